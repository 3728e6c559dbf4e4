//! Upgrade graph of a channel, with numbered nodes: heads, cycles, unreachable nodes. Linear in its size.

/// Edges of a channel whose nodes are the numbers below `len`.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Replaced node of each node, if the channel has it.
    pub(super) replaces: Vec<Option<usize>>,
    /// Skipped nodes of each node that the channel has.
    pub(super) skips: Vec<Vec<usize>>,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.replaces.len()
    }

    /// Returns the node that `node` replaces; an edge to itself does not count.
    fn replaced_by(&self, node: usize) -> Option<usize> {
        self.replaces
            .get(node)
            .copied()
            .flatten()
            .filter(|to| *to != node)
    }

    fn skipped_by(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let skips = self.skips.get(node).map_or(&[][..], Vec::as_slice);
        skips.iter().copied().filter(move |to| *to != node)
    }

    /// Returns the nodes that no other node replaces or skips.
    pub(super) fn heads(&self) -> Vec<usize> {
        let mut reached = vec![false; self.len()];
        for node in 0..self.len() {
            for to in self.replaced_by(node).into_iter().chain(self.skipped_by(node)) {
                mark(&mut reached, to);
            }
        }
        unmarked(&reached)
    }

    /// Returns the cycles of `replaces`, each once, starting with its lowest node in the direction of the edges.
    pub(super) fn replaces_cycles(&self) -> Vec<Vec<usize>> {
        // The walk that first reached a node; 0 means none.
        let mut walks = vec![0_usize; self.len()];
        let mut cycles = Vec::new();
        for start in 0..self.len() {
            let walk = start + 1;
            let mut at = Some(start);
            while let Some(node) = at.filter(|node| walks.get(*node) == Some(&0)) {
                if let Some(seen) = walks.get_mut(node) {
                    *seen = walk;
                }
                at = self.replaced_by(node);
            }
            // The walk reached its own path: this node is on a cycle.
            if let Some(entry) = at.filter(|node| walks.get(*node) == Some(&walk)) {
                let mut cycle = vec![entry];
                let mut next = self.replaced_by(entry);
                while let Some(node) = next.filter(|node| *node != entry) {
                    cycle.push(node);
                    next = self.replaced_by(node);
                }
                let lowest = (0..cycle.len())
                    .min_by_key(|at| cycle.get(*at))
                    .unwrap_or_default();
                cycle.rotate_left(lowest);
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// Returns the nodes that are neither skipped nor reachable by `replaces` from `heads`.
    pub(super) fn unreachable(&self, heads: &[usize]) -> Vec<usize> {
        let mut reached = vec![false; self.len()];
        for node in 0..self.len() {
            for to in self.skipped_by(node) {
                mark(&mut reached, to);
            }
        }
        let mut walked = vec![false; self.len()];
        for head in heads {
            let mut at = Some(*head);
            while let Some(node) = at.filter(|node| walked.get(*node) == Some(&false)) {
                mark(&mut walked, node);
                mark(&mut reached, node);
                at = self.replaced_by(node);
            }
        }
        unmarked(&reached)
    }

    /// Returns the strongly connected components of `replaces` and `skips` with several nodes.
    pub(super) fn strongly_connected(&self) -> Vec<Vec<usize>> {
        let mut search = Search {
            order: vec![0; self.len()],
            low: vec![0; self.len()],
            open: vec![false; self.len()],
            ..Search::default()
        };
        for start in 0..self.len() {
            if search.order.get(start) == Some(&0) {
                search.run(self, start);
            }
        }
        search.strongly_connected.sort();
        search.strongly_connected
    }

    fn edges(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.replaced_by(node).into_iter().chain(self.skipped_by(node))
    }
}

fn mark(marks: &mut [bool], at: usize) {
    if let Some(mark) = marks.get_mut(at) {
        *mark = true;
    }
}

fn unmarked(marks: &[bool]) -> Vec<usize> {
    (0..marks.len())
        .filter(|at| marks.get(*at) == Some(&false))
        .collect()
}

/// Tarjan's search for strongly connected components, with an explicit stack: a channel may be a chain of tens of
/// thousands of entries.
#[derive(Debug, Default)]
struct Search {
    count: usize,
    /// Visit order of each node, from 1.
    order: Vec<usize>,
    /// Earliest node on the stack that is reachable from a node.
    low: Vec<usize>,
    open: Vec<bool>,
    stack: Vec<usize>,
    strongly_connected: Vec<Vec<usize>>,
}

impl Search {
    fn run(&mut self, graph: &Graph, start: usize) {
        self.visit(start);
        let mut calls = vec![(start, graph.edges(start).collect::<Vec<_>>().into_iter())];
        while let Some((node, edges)) = calls.last_mut() {
            let node = *node;
            match edges.next() {
                Some(to) if self.order.get(to) == Some(&0) => {
                    self.visit(to);
                    calls.push((to, graph.edges(to).collect::<Vec<_>>().into_iter()));
                }
                Some(to) if self.open.get(to) == Some(&true) => {
                    let order = self.order.get(to).copied().unwrap_or_default();
                    self.lower(node, order);
                }
                Some(_) => {}
                None => {
                    calls.pop();
                    let low = self.low.get(node).copied().unwrap_or_default();
                    if let Some((caller, _)) = calls.last() {
                        self.lower(*caller, low);
                    }
                    if self.order.get(node) == Some(&low) {
                        self.close(node);
                    }
                }
            }
        }
    }

    fn visit(&mut self, node: usize) {
        self.count += 1;
        for numbers in [&mut self.order, &mut self.low] {
            if let Some(number) = numbers.get_mut(node) {
                *number = self.count;
            }
        }
        mark(&mut self.open, node);
        self.stack.push(node);
    }

    fn lower(&mut self, node: usize, to: usize) {
        if let Some(low) = self.low.get_mut(node) {
            *low = to.min(*low);
        }
    }

    fn close(&mut self, root: usize) {
        let mut knot = Vec::new();
        while let Some(node) = self.stack.pop() {
            if let Some(open) = self.open.get_mut(node) {
                *open = false;
            }
            knot.push(node);
            if node == root {
                break;
            }
        }
        if knot.len() > 1 {
            knot.sort_unstable();
            self.strongly_connected.push(knot);
        }
    }
}
