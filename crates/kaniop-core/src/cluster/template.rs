//! Texts of users in which `{replica_index}`, `{pod_name}` and `{domain}` stand for a node's own. Other braces, as in JSON, are left as they are.

/// The text for a node. What is filled in is not looked through again.
#[must_use]
pub fn rendered(template: &str, pod_name: &str, replica_index: i32, domain: &str) -> String {
    let text = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Variable("replica_index") => replica_index.to_string(),
        Piece::Variable("pod_name") => pod_name.to_owned(),
        Piece::Variable("domain") => domain.to_owned(),
        Piece::Variable(unknown) => format!("{{{unknown}}}"),
    };
    pieces(template).into_iter().map(text).collect()
}

/// The variables of a text that stand for nothing.
#[must_use]
pub fn unknown_variables(template: &str) -> Vec<&str> {
    let unknown = |piece| match piece {
        Piece::Variable("replica_index" | "pod_name" | "domain") | Piece::Text(_) => None,
        Piece::Variable(name) => Some(name),
    };
    pieces(template).into_iter().filter_map(unknown).collect()
}

enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        if let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_variable(name)) {
            pieces.extend([Piece::Text(before), Piece::Variable(name)]);
            rest = after;
        } else {
            pieces.extend([Piece::Text(before), Piece::Text("{")]);
            rest = after;
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

fn is_variable(name: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    name.bytes().all(word) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(template: &str) -> String {
        rendered(template, "idm-main-2", 2, "{pod_name}.example.com")
    }

    #[test]
    fn each_variable_stands_for_the_nodes_own_and_nothing_is_filled_in_twice() {
        for (template, text) in [
            ("{pod_name}", "idm-main-2"),
            ("a{replica_index}b{replica_index}", "a2b2"),
            ("{domain}", "{pod_name}.example.com"),
            ("", ""),
            ("plain", "plain"),
        ] {
            assert_eq!(own(template), text);
            assert!(unknown_variables(template).is_empty(), "{template}");
        }
    }

    #[test]
    fn braces_that_are_no_variable_stay() {
        for text in [r#"{"a": {"b": 1}}"#, "{}", "{", "}", "{a b}", "{0}", "{{", "a}{b"] {
            assert_eq!(own(text), text);
            assert!(unknown_variables(text).is_empty(), "{text}");
        }
        assert_eq!(own(r#"{"name": "{pod_name}"}"#), r#"{"name": "idm-main-2"}"#);
    }

    #[test]
    fn a_variable_that_stands_for_nothing_is_named() {
        assert_eq!(unknown_variables("{pod}.{domain}.{Region}"), ["pod", "Region"]);
        assert_eq!(own("{pod}.a"), "{pod}.a");
    }
}
