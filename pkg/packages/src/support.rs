//! Support of versions in words.

use olm_fbc::PackageContent;
use olm_fbc::lifecycle::{Date, Phase, Platform};
use olm_resolve::{SupportAnswer, SupportState};
use olm_version::VersionRelease;

/// Returns the support of a bundle's version in its catalog.
pub fn of_bundle(content: &PackageContent, version: Option<&VersionRelease>, today: Date) -> SupportAnswer {
    version.map_or(SupportAnswer::NoData, |version| {
        SupportAnswer::of(&content.lifecycles, &version.version, today)
    })
}

/// Describes the support in a few words; empty without data.
pub fn short(answer: &SupportAnswer) -> String {
    let support = match answer {
        SupportAnswer::NoData => return String::new(),
        SupportAnswer::Unknown(_) => return "unknown".to_owned(),
        SupportAnswer::Known(support) => support,
    };
    let end = support.last_day.map(|day| day.to_string());
    let named = |before: &str, phase: &Option<Phase>| match phase {
        Some(phase) if !phase.name.is_empty() => format!(" ({before}{})", phase.name),
        _ => String::new(),
    };
    let now = named("now ", &support.phase);
    match (support.state, end) {
        (SupportState::Supported, Some(end)) => format!("until {end}{now}"),
        (SupportState::Supported | SupportState::EndingSoon, None) => {
            format!("no end{now}")
        }
        (SupportState::EndingSoon, Some(end)) => format!("ends soon: {end}{now}"),
        (SupportState::Ended, Some(end)) => format!("ended {end}"),
        (SupportState::Ended, None) => "ended".to_owned(),
        (SupportState::BetweenPhases, _) => {
            let start = support.next.as_ref().and_then(|next| next.start_date);
            let start = start.map_or_else(|| "later".to_owned(), |day| format!("from {day}"));
            format!("{start}{}", named("", &support.next))
        }
    }
}

/// Describes the support in sentences; `None` without data.
pub fn sentences(answer: &SupportAnswer) -> Option<String> {
    match answer {
        SupportAnswer::NoData => None,
        SupportAnswer::Unknown(unknown) => Some(format!("unknown: {}", unknown.reason)),
        SupportAnswer::Known(support) => Some(support.to_string()),
    }
}

/// Returns true if the support ends soon or has ended.
pub fn needs_attention(answer: &SupportAnswer) -> bool {
    let state = answer.known().map(|support| support.state);
    matches!(state, Some(SupportState::EndingSoon | SupportState::Ended))
}

/// Lists platforms with their versions.
pub fn platforms(platforms: &[Platform]) -> String {
    let one = |platform: &Platform| {
        let versions: Vec<String> = platform.versions.iter().map(ToString::to_string).collect();
        format!("{} {}", platform.name, versions.join(", "))
    };
    platforms.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use olm_fbc::lifecycle::Lifecycles;
    use olm_version::BundleVersion;

    use super::*;

    #[test]
    fn each_state_in_a_few_words() {
        let mut lifecycles = Lifecycles::default();
        lifecycles.add(
            br#"{"versions": [
                {"name": "1.0", "phases": [{"name": "Full", "startDate": "2024-01-01", "endDate": "2024-12-31"}]},
                {"name": "1.1", "phases": [{"startDate": "2024-01-01"}]}
            ]}"#,
        );
        let content = PackageContent {
            lifecycles,
            ..PackageContent::default()
        };
        for (version, day, text, attention) in [
            ("1.0.0", "2023-01-01", "from 2024-01-01 (Full)", false),
            ("1.0.0", "2024-01-01", "until 2024-12-31 (now Full)", false),
            ("1.0.0", "2024-12-31", "ends soon: 2024-12-31 (now Full)", true),
            ("1.0.0", "2025-01-01", "ended 2024-12-31", true),
            ("1.1.7", "2025-01-01", "no end", false),
            ("1.2.0", "2025-01-01", "unknown", false),
            ("broken", "2025-01-01", "", false),
        ] {
            let version = BundleVersion::from(version);
            let answer = of_bundle(&content, version.parsed().ok(), day.parse().unwrap());
            assert_eq!(
                (short(&answer).as_str(), needs_attention(&answer)),
                (text, attention),
                "{version} {day}"
            );
        }
        assert_eq!(sentences(&SupportAnswer::NoData), None);
    }
}
