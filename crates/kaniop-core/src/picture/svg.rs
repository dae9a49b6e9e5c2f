//! Whether a text is an SVG that shows something and does nothing.
//!
//! The server hands pictures out under its own name, and an SVG may hold programs: opened by itself, it would run them as if they were
//! the server's. So an SVG with scripts, or with anything that could bring them in unseen, is refused. It is read as a stream: a tree of
//! a hostile document can be many times as large as its text.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesDecl, BytesStart, Event};
use quick_xml::reader::Reader;

const NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// Elements that run programs or hold documents that may.
const ACTIVE: &[&str] = &["script", "foreignobject", "handler", "listener", "iframe", "embed", "object"];

/// Why a text is not an SVG that may be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SvgError {
    /// Some other XML or HTML.
    #[error("cannot be used: its outermost element is not <svg> in the namespace {NAMESPACE}")]
    OtherRoot,
    /// Not XML.
    #[error("cannot be read: it is not well-formed XML near byte {0}")]
    Malformed(
        /// Where, counted from the beginning.
        u64,
    ),
    /// Another character set.
    #[error("cannot be read: save it in UTF-8")]
    Encoding,
    /// Declares entities.
    #[error("has declarations of its own in its DOCTYPE, which can hide anything: save it as plain SVG")]
    Declarations,
    /// Holds a program.
    #[error("is not shown because it may run programs, by {0}: save it as plain SVG, without scripts")]
    Active(
        /// By what.
        &'static str,
    ),
}

/// Reads the whole text.
pub(super) fn check(text: &str) -> Result<(), SvgError> {
    let mut reader = Reader::from_str(text);
    let mut depth = 0usize;
    let mut begun = false;
    loop {
        let at = reader.buffer_position();
        let event = reader.read_event().map_err(|_| SvgError::Malformed(at))?;
        let is_root = depth == 0 && !begun;
        match &event {
            Event::Decl(declaration) => is_utf8(declaration).then_some(()).ok_or(SvgError::Encoding)?,
            Event::DocType(doctype) if doctype.contains('[') => return Err(SvgError::Declarations),
            Event::PI(instruction) if instruction.target() == "xml-stylesheet" => {
                return Err(SvgError::Active("a style sheet"));
            }
            Event::Start(tag) | Event::Empty(tag) if depth > 0 || is_root => {
                inspect(tag, is_root, at)?;
                begun = true;
            }
            Event::Eof if begun && depth == 0 => return Ok(()),
            // A second root, or the end before the end.
            Event::Start(_) | Event::Empty(_) | Event::Eof => return Err(SvgError::Malformed(at)),
            _ => {}
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// In another character set the same bytes can be another text than the one that is checked here.
fn is_utf8(declaration: &BytesDecl<'_>) -> bool {
    declaration.encoding().is_none_or(|encoding| encoding.is_ok_and(|name| name.eq_ignore_ascii_case("utf-8")))
}

fn inspect(tag: &BytesStart<'_>, is_root: bool, at: u64) -> Result<(), SvgError> {
    let name = tag.local_name().into_inner();
    if is_root && name != "svg" {
        return Err(SvgError::OtherRoot);
    }
    if ACTIVE.iter().any(|active| name.eq_ignore_ascii_case(active)) {
        return Err(SvgError::Active("an element such as <script> or <foreignObject>"));
    }
    let declaration =
        tag.name().prefix().map_or_else(|| "xmlns".to_owned(), |prefix| format!("xmlns:{}", prefix.into_inner()));
    let mut namespace = None;
    let mut attributes = tag.attributes();
    // Looking for doubles takes quadratic time.
    attributes.with_checks(false);
    for attribute in attributes {
        let malformed = |_| SvgError::Malformed(at);
        let attribute = attribute.map_err(|_| SvgError::Malformed(at))?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(malformed)?;
        check_attribute(attribute.key.local_name().into_inner(), &value)?;
        if attribute.key.into_inner() == declaration {
            namespace = Some(value.into_owned());
        }
    }
    if is_root && namespace.as_deref() != Some(NAMESPACE) { Err(SvgError::OtherRoot) } else { Ok(()) }
}

fn check_attribute(name: &str, value: &str) -> Result<(), SvgError> {
    let is_event = |name: &str| name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("on"));
    if is_event(name) {
        return Err(SvgError::Active("an attribute such as onload"));
    }
    // Browsers skip blanks in front of a scheme, and line ends and tabs within it.
    let target: String = value.chars().filter(|c| !c.is_whitespace() && !c.is_control()).take(32).collect();
    let target = target.to_ascii_lowercase();
    let is_document =
        target.starts_with("data:") && (!target.starts_with("data:image/") || target.starts_with("data:image/svg"));
    if target.starts_with("javascript:") || is_document {
        return Err(SvgError::Active("a link to a program or to an embedded document"));
    }
    if name == "attributeName" && (is_event(&target) || target.ends_with("href")) {
        return Err(SvgError::Active("an animation of links or events"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn within(content: &str) -> String {
        format!("<svg xmlns='{NAMESPACE}' xmlns:xlink='http://www.w3.org/1999/xlink'>{content}</svg>")
    }

    #[test]
    fn pictures_as_tools_write_them_are_taken() {
        for text in [
            within(""),
            within(
                "<g><path d='M0 0 L1 1'/><text>on &amp; on &#169;</text><style><![CDATA[.a{fill:red}]]></style></g>",
            ),
            within(
                "<image xlink:href='data:image/png;base64,AAAA'/><use xlink:href='#a'/><a href='https://example.com/'/>",
            ),
            within("<animate attributeName='opacity' values='0;1'/>"),
            format!(
                "<?xml version='1.0' encoding='UTF-8' standalone='no'?>\n<!-- Inkscape -->\n<!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd'>\n{}\n",
                within("")
            ),
            format!("<s:svg xmlns:s='{NAMESPACE}'><s:g/></s:svg>"),
            format!("<svg xmlns='{}'/>", NAMESPACE.replace('/', "&#47;")),
        ] {
            assert_eq!(check(&text), Ok(()), "{text}");
        }
    }

    #[test]
    fn programs_are_refused_wherever_they_hide() {
        for content in [
            "<script>alert(1)</script>",
            "<script/>",
            "<SCRIPT/>",
            "<x:script xmlns:x='http://www.w3.org/2000/svg' href='https://example.com/a.js'/>",
            "<g><g><foreignObject><iframe xmlns='http://www.w3.org/1999/xhtml'/></foreignObject></g></g>",
            "<g onload='alert(1)'/>",
            "<g ONCLICK='alert(1)'/>",
            "<a href='javascript:alert(1)'/>",
            "<a xlink:href=' java&#10;script&#58;alert(1)'/>",
            "<a href='&#x1;JavaScript:alert(1)'/>",
            "<use href='data:image/svg+xml;base64,AAAA'/>",
            "<a href='data:text/html,hello'/>",
            "<animate attributeName='xlink:href' to='x'/>",
            "<set attributeName='onclick' to='x'/>",
            "<?xml-stylesheet type='text/xsl' href='a.xsl'?>",
        ] {
            let verdict = check(&within(content));
            assert!(matches!(verdict, Err(SvgError::Active(_))), "{content}: {verdict:?}");
        }
        assert!(matches!(check(&format!("<svg onload='a()' xmlns='{NAMESPACE}'/>")), Err(SvgError::Active(_))));
        assert!(matches!(check(&format!("<?xml-stylesheet href='a'?>{}", within(""))), Err(SvgError::Active(_))));
    }

    #[test]
    fn what_can_hide_programs_is_refused() {
        let entity = format!("<!DOCTYPE svg [<!ENTITY x '<script/>'>]>{}", within("&x;"));
        assert_eq!(check(&entity), Err(SvgError::Declarations));
        assert_eq!(check(&format!("<?xml version='1.0' encoding='UTF-7'?>{}", within(""))), Err(SvgError::Encoding));
    }

    #[test]
    fn other_documents_are_refused() {
        for text in [
            "<html xmlns='http://www.w3.org/1999/xhtml'/>",
            "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>",
            "<svg/>",
            "<svg xmlns='http://example.com/'/>",
            "<x:svg xmlns='http://www.w3.org/2000/svg' xmlns:x='http://example.com/'/>",
            "<feed><svg xmlns='http://www.w3.org/2000/svg'/></feed>",
        ] {
            assert_eq!(check(text), Err(SvgError::OtherRoot), "{text}");
        }
        let whole = within("<g/>");
        for text in [
            "<",
            "<!-- only a comment -->",
            whole.trim_end_matches("</svg>"),
            &format!("{whole}{whole}"),
            &within("<g>"),
            &within("<g></h>"),
            &within("<g a=b/>"),
            &within("<g a='&unknown;'/>"),
        ] {
            let verdict = check(text);
            assert!(matches!(verdict, Err(SvgError::Malformed(_))), "{text}: {verdict:?}");
        }
    }

    #[test]
    fn hostile_documents_take_neither_stack_nor_time() {
        let size = super::super::content::LARGEST;
        let nested = "<g>".repeat(size / 3);
        assert!(matches!(check(&within(&nested)), Err(SvgError::Malformed(_))));
        let attributes: String = (0..size / 10).map(|n| format!(" a{n}='{}'", n % 10)).collect();
        assert_eq!(check(&within(&format!("<g{attributes}/>"))), Ok(()));
        let namespaces: String = (0..size / 20).map(|n| format!("<g xmlns:n{n}='x'>")).collect();
        let ends = "</g>".repeat(size / 20);
        assert_eq!(check(&within(&format!("{namespaces}{ends}"))), Ok(()));
    }

    proptest! {
        #[test]
        fn a_script_is_found_at_any_depth(depth in 0usize..20, before in "(<g/>|<!-- [a-z ]* -->|text|<!\\[CDATA\\[<x>\\]\\]>){0,6}") {
            let content = format!("{}{before}<script/>{}", "<g>".repeat(depth), "</g>".repeat(depth));
            prop_assert!(matches!(check(&within(&content)), Err(SvgError::Active(_))));
        }

        #[test]
        fn any_text_is_judged_without_a_crash(text in "[<>/!?\\[\\]a-z'\"=&;: -]{0,60}") {
            let _ = check(&text);
            let _ = check(&within(&text));
        }
    }
}
