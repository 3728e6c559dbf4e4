//! Maximum number of connections within the process's limit of file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for files, and for connections to the API server and to registries.
const RESERVED: u64 = 256;

/// Returns at most `wanted`, or fewer if the limit of open files is low. Raises the process's soft limit to the hard
/// limit, as Go's runtime does.
pub(super) fn connections(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let limit = if current != maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        maximum
    } else {
        current
    };
    limited(wanted, limit)
}

fn limited(wanted: usize, limit: Option<u64>) -> usize {
    let Some(limit) = limit else {
        return wanted;
    };
    // A small limit is halved: the process has more than one server.
    let left = limit.saturating_sub(RESERVED).max(limit / 2) / 2;
    usize::try_from(left)
        .map_or(wanted, |left| left.min(wanted))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_of_descriptors_leaves_room_for_files() {
        assert_eq!(limited(1024, None), 1024);
        assert_eq!(limited(1024, Some(1_048_576)), 1024);
        assert_eq!(limited(1024, Some(1024)), 384);
        assert_eq!(limited(1024, Some(64)), 16);
        assert_eq!(limited(1024, Some(0)), 1);
    }
}
