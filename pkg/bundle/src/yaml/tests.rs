use std::fmt::Write as _;

use serde_json::json;

use super::*;

fn one(text: &str) -> Value {
    document(text.as_bytes()).unwrap()
}

#[test]
fn scalars_follow_yaml_1_1() {
    let text = "{a: yes, b: on, c: 012, d: 1e3, e: 0o14, f: 2001-01-01, g: ~, h: 0x1F, i: 1_000, j: .5, k: NO, \
                l: '1', m: 08, nn: 1.2.3, o: 2021-01-01T00:00:00Z, p: -5, q: 1.0, r: !!str 5, 8080: x}";
    assert_eq!(
        one(text),
        json!({"a": true, "b": true, "c": 10, "d": 1000, "e": 12, "f": "2001-01-01", "g": null, "h": 31, "i": 1000,
               "j": 0.5, "k": false, "l": "1", "m": 8, "nn": "1.2.3", "o": "2021-01-01T00:00:00Z", "p": -5, "q": 1,
               "r": "5", "8080": "x"})
    );
}

#[test]
fn merges_and_aliases() {
    let text = "a: &a {x: 1, y: 2}\nb:\n  x: 9\n  <<: *a\nc: {<<: [*a, {z: 3, x: 7}]}\n";
    assert_eq!(one(text)["b"], json!({"x": 9, "true": 2}));
    assert_eq!(one(text)["c"], json!({"x": 1, "true": 2, "z": 3}));
}

#[test]
fn empty_documents_vanish_and_the_last_key_wins() {
    assert_eq!(
        documents(b"a: 1\na: 2\n---\n---\n# nothing\n---\nb: 1\n").unwrap(),
        [json!({"a": 2}), json!({"b": 1})]
    );
}

#[test]
fn alias_bombs_and_depth_are_refused() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", vec![before; 10].join(",")).unwrap();
    }
    assert!(documents(bomb.as_bytes()).unwrap_err().contains("aliasing"));
    assert!(documents("[".repeat(100_000).as_bytes()).is_err());

    // Every level is shallow by itself, the chain of aliases is not.
    let mut tower = "a0: &a0 x\n".to_owned();
    for level in 1..500 {
        writeln!(tower, "a{level}: &a{level} [[[[[[[[*a{}]]]]]]]]", level - 1).unwrap();
    }
    assert_eq!(
        documents(tower.as_bytes()).unwrap_err(),
        "yaml: exceeded max depth"
    );
}
