//! The upgrade graph of one channel by numbers: heads, cycles, what no way leads to. Linear in its size.

/// The edges of a channel whose nodes are the numbers below `len`.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The node that each node replaces, if the channel has it.
    pub(super) replaces: Vec<Option<usize>>,
    /// The nodes that each node skips, as far as the channel has them.
    pub(super) skips: Vec<Vec<usize>>,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.replaces.len()
    }

    /// Returns the node that `node` replaces; an edge to itself does not count.
    fn below(&self, node: usize) -> Option<usize> {
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

    /// The nodes that no other one replaces or skips.
    pub(super) fn heads(&self) -> Vec<usize> {
        let mut reached = vec![false; self.len()];
        for node in 0..self.len() {
            for to in self.below(node).into_iter().chain(self.skipped_by(node)) {
                mark(&mut reached, to);
            }
        }
        unmarked(&reached)
    }

    /// The cycles of `replaces`, each once, each from its lowest node on in the direction of the edges.
    pub(super) fn replaces_cycles(&self) -> Vec<Vec<usize>> {
        // The walk in which a node was first met; 0 means none.
        let mut walks = vec![0_usize; self.len()];
        let mut cycles = Vec::new();
        for start in 0..self.len() {
            let walk = start + 1;
            let mut at = Some(start);
            while let Some(node) = at.filter(|node| walks.get(*node) == Some(&0)) {
                if let Some(seen) = walks.get_mut(node) {
                    *seen = walk;
                }
                at = self.below(node);
            }
            // The walk ended on its own way: there is a cycle, through this node.
            if let Some(entry) = at.filter(|node| walks.get(*node) == Some(&walk)) {
                let mut cycle = vec![entry];
                let mut next = self.below(entry);
                while let Some(node) = next.filter(|node| *node != entry) {
                    cycle.push(node);
                    next = self.below(node);
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

    /// The nodes that are neither skipped nor on the way of `replaces` from one of `heads`.
    pub(super) fn stranded(&self, heads: &[usize]) -> Vec<usize> {
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
                at = self.below(node);
            }
        }
        unmarked(&reached)
    }

    /// Groups of nodes of which each leads to every other by `replaces` and `skips`, without single nodes.
    pub(super) fn knots(&self) -> Vec<Vec<usize>> {
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
        search.knots.sort();
        search.knots
    }

    fn edges(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.below(node).into_iter().chain(self.skipped_by(node))
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

/// Tarjan's search for strongly connected components, with a stack of its own: a channel may be a chain of
/// tens of thousands of entries.
#[derive(Debug, Default)]
struct Search {
    count: usize,
    /// Visit order of each node, from 1.
    order: Vec<usize>,
    /// The earliest node on the stack that a node leads to.
    low: Vec<usize>,
    open: Vec<bool>,
    stack: Vec<usize>,
    knots: Vec<Vec<usize>>,
}

impl Search {
    fn run(&mut self, graph: &Graph, start: usize) {
        self.meet(start);
        let mut calls = vec![(start, graph.edges(start).collect::<Vec<_>>().into_iter())];
        while let Some((node, edges)) = calls.last_mut() {
            let node = *node;
            match edges.next() {
                Some(to) if self.order.get(to) == Some(&0) => {
                    self.meet(to);
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

    fn meet(&mut self, node: usize) {
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
            self.knots.push(knot);
        }
    }
}
