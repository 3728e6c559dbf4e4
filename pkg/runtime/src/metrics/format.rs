//! The older text format of Prometheus, for scrapers that do not request `OpenMetrics`.
//!
//! Relevant differences: a counter is declared under the name of its samples; units, the end mark and the type
//! `info` do not exist. A parser of the older format fails on `info`.

use std::fmt::Write as _;

/// Converts `OpenMetrics` text.
pub(super) fn from_openmetrics(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    // A metric's help precedes its type, which determines its name.
    let mut help = None;
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                let _ = writeln!(text, "# HELP {name}{suffix} {help}");
            }
            let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with("# ") {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_declared_as_they_are_written() {
        let openmetrics = "# HELP a Things.\n# TYPE a counter\n# UNIT a seconds\na_total 1\n\
                           # HELP b Build.\n# TYPE b info\nb_info{version=\"1\"} 1\n\
                           # HELP c Size.\n# TYPE c gauge\nc 2.5\n# EOF\n";
        assert_eq!(
            from_openmetrics(openmetrics),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total 1\n\
             # HELP b_info Build.\n# TYPE b_info gauge\nb_info{version=\"1\"} 1\n\
             # HELP c Size.\n# TYPE c gauge\nc 2.5\n"
        );
    }
}
