//! The real API server with this project's CRDs: own cases always, upstream's recorded answers if available.

use olm_harness::{ControlPlane, install_crds, workspace};
use olm_integration::{api_validation, vectors};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_validates_as_expected() {
    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client();
    install_crds(&client).await.unwrap();

    let mut wrong = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(workspace::testdata().join("api"))
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let mut own = 0;
    for path in files {
        for case in api_validation::own_cases(&path).unwrap() {
            own += 1;
            let difference = api_validation::run_case(&client, &case).await.unwrap();
            wrong.extend(difference.map(|difference| format!("{}: {difference}", case.name)));
        }
    }
    println!("own cases: {own}, wrong: {}", wrong.len());
    assert!(own > 0);

    if let Some(dir) = vectors::folder() {
        let report = api_validation::run_at(&client, &dir).await.unwrap();
        println!("{report}");
        wrong.extend(report.wrong);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
