//! Problem of one container, from its status. Pure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStateTerminated, ContainerStatus, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::problem::{Problem, Severity, foreign, reason};

/// Time after a restart within which a container that is not ready counts as crashing, not as slow.
const SETTLED: SignedDuration = SignedDuration::from_mins(1);

/// Role of a container in its pod, which decides how the container may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A container of a Deployment and the like: it must run.
    Service,
    /// A container of a Job: it must end with 0.
    Task,
    /// An init container: it must end with 0 before the others start.
    Init,
}

/// Returns the problem of a container; `None` if it works, or starts without an error so far.
pub(super) fn problem(
    status: &ContainerStatus,
    spec: Option<&Container>,
    role: Role,
    now: Timestamp,
) -> Option<Problem> {
    let state = status.state.as_ref()?;
    let title = match role {
        Role::Init => format!("init container {}", foreign(&status.name)),
        Role::Service | Role::Task => format!("container {}", foreign(&status.name)),
    };
    let last = status
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    if let Some(waiting) = &state.waiting {
        let why = waiting.reason.as_deref().unwrap_or_default();
        let message = waiting.message.as_deref().unwrap_or_default();
        return match why {
            "" | "ContainerCreating" | "PodInitializing" => None,
            "CrashLoopBackOff" => Some(match last {
                Some(last) => crash(&title, last, true),
                None => Problem::new(
                    Severity::Container,
                    &title,
                    format!("{title} waits: CrashLoopBackOff"),
                ),
            }),
            _ => {
                let text = format!("{title} cannot start: {}", reason(why, message));
                let problem = Problem::new(Severity::Container, &title, text);
                // The kubelet alternates between the cause (ErrImagePull) and the pause after it.
                Some(if why == "ImagePullBackOff" {
                    problem.passing()
                } else {
                    problem
                })
            }
        };
    }
    if let Some(ended) = &state.terminated {
        return (role == Role::Service || ended.exit_code != 0).then(|| crash(&title, ended, false));
    }
    let running = state.running.as_ref()?;
    if status.ready || role != Role::Service {
        return None;
    }
    let started = running.started_at.as_ref();
    let restarted = started.is_some_and(|started| now.duration_since(started.0) < SETTLED);
    match last {
        Some(last) if status.restart_count > 0 && restarted => Some(crash(&title, last, false)),
        _ => {
            let text = format!("{title} runs but is not ready{}", probe(status, spec));
            Some(Problem::new(Severity::NotReady, &title, text))
        }
    }
}

/// Returns the problem of a container that ended. `looping`: the kubelet delays its next start.
fn crash(title: &str, last: &ContainerStateTerminated, looping: bool) -> Problem {
    let why = last.reason.as_deref().unwrap_or_default();
    let signal = last.signal.filter(|signal| *signal != 0);
    let code = match signal {
        Some(signal) => format!("exit code {}, signal {signal}", last.exit_code),
        None => format!("exit code {}", last.exit_code),
    };
    let ended = match reason(why, last.message.as_deref().unwrap_or_default()) {
        why if why.is_empty() => code,
        why => format!("{code}, {why}"),
    };
    // Between two ends the container waits, runs and ends: one text for all, as long as it ends in the same way.
    let key = format!("{title} {ended}");
    let problem = |text| Problem::new(Severity::Container, &key, text);
    if looping {
        problem(format!(
            "{title} ends again and again (CrashLoopBackOff), last with {ended}"
        ))
    } else {
        problem(format!("{title} ended with {ended}")).passing()
    }
}

/// Returns the probe that the container has not passed, as the end of a sentence.
fn probe(status: &ContainerStatus, spec: Option<&Container>) -> String {
    let named = |name: &str, probe: &Probe| match action(probe) {
        Some(action) => format!(": its {name} probe ({action}) has not passed"),
        None => format!(": its {name} probe has not passed"),
    };
    let Some(spec) = spec else {
        return String::new();
    };
    match (&spec.startup_probe, &spec.readiness_probe) {
        (Some(probe), _) if status.started == Some(false) => named("startup", probe),
        (_, Some(probe)) => named("readiness", probe),
        _ => String::new(),
    }
}

fn action(probe: &Probe) -> Option<String> {
    let port = |port: &IntOrString| match port {
        IntOrString::Int(port) => port.to_string(),
        IntOrString::String(name) => foreign(name),
    };
    if let Some(get) = &probe.http_get {
        let path = foreign(get.path.as_deref().unwrap_or("/"));
        return Some(format!("HTTP GET {path} on port {}", port(&get.port)));
    }
    if let Some(tcp) = &probe.tcp_socket {
        return Some(format!("TCP port {}", port(&tcp.port)));
    }
    if let Some(grpc) = &probe.grpc {
        return Some(format!("gRPC port {}", grpc.port));
    }
    let exec = probe.exec.as_ref()?;
    let program = exec.command.as_ref()?.first()?;
    Some(format!("command {}", foreign(program)))
}
