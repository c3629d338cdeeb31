//! [`Header`]: what a file says of its array.

use std::io::{self, Write};

use ndarray::{ArrayRef, Dimension};

use super::element::Stored;

/// The bytes with which every file begins.
pub const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// The number of bytes before the header in version 1.0: [`MAGIC`], the version and a length.
const BEGIN: usize = 10;
/// Elements begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// The type, the order and the shape of an array.
#[derive(Debug, PartialEq)]
pub struct Header {
    /// The literal that names the type, such as `'<f8'`, or describes one with fields.
    pub kind: String,
    /// Whether the first index varies fastest.
    pub fortran: bool,
    /// The lengths of the axes.
    pub shape: Vec<usize>,
}

impl Header {
    /// The header of an array in standard order, or in Fortran's.
    pub fn of<A: Stored, D: Dimension>(array: &ArrayRef<A, D>, fortran: bool) -> Self {
        // A single byte has no order.
        let order = if size_of::<A>() == 1 { '|' } else { '<' };
        Header { kind: format!("'{order}{}'", A::CODE), fortran, shape: array.shape().to_vec() }
    }

    /// Reads a dictionary of Python.
    pub fn parse(text: &str) -> Result<Self, String> {
        let inner = text.trim_ascii().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let entries = inner.and_then(|inner| split(inner, ','));
        let (mut kind, mut fortran, mut shape) = (None, None, None);
        for entry in entries.ok_or("has a header that is not a dictionary")? {
            let parts = split(entry, ':').unwrap_or_default();
            let [key, value] = parts[..] else {
                return Err(format!(
                    "has a header with the entry {entry}, which has not one key and one value"
                ));
            };
            let wrong = || format!("has a header in which {key} is {value}");
            match unquoted(key) {
                Some("descr") => kind = Some(value.to_string()),
                Some("fortran_order") => fortran = Some(boolean(value).ok_or_else(wrong)?),
                Some("shape") => shape = Some(lengths(value).ok_or_else(wrong)?),
                _ => return Err(format!("has a header with the unknown key {key}")),
            }
        }
        let missing = |key: &str| format!("has a header without the key '{key}'");
        Ok(Header {
            kind: kind.ok_or_else(|| missing("descr"))?,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// Whether elements are `A`, in either order of bytes.
    pub fn holds<A: Stored>(&self) -> bool {
        let orders: &[char] = if size_of::<A>() == 1 { &['|', '<', '>'] } else { &['<', '>'] };
        let code = unquoted(&self.kind).and_then(|name| name.strip_prefix(orders));
        code == Some(A::CODE)
    }

    /// Whether the highest byte of an element is the first.
    pub fn is_reversed(&self) -> bool {
        unquoted(&self.kind).is_some_and(|name| name.starts_with('>'))
    }

    /// Writes the beginning of a file, of version 1.0.
    pub fn write(&self, mut file: impl Write) -> io::Result<()> {
        let Header { kind, fortran, shape } = self;
        let order = if *fortran { "True" } else { "False" };
        let shape = tuple(shape);
        let text = format!("{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}}}");
        // With spaces and the end of a line, up to where elements begin.
        let length = ((BEGIN + text.len() + 1) / ALIGNMENT + 1) * ALIGNMENT - BEGIN;
        let stated = u16::try_from(length).map_err(|_| io::Error::other("has too many axes for a header"))?;
        file.write_all(&MAGIC)?;
        file.write_all(&[1, 0])?;
        file.write_all(&stated.to_le_bytes())?;
        writeln!(file, "{text:<width$}", width = length - 1)
    }
}

/// The parts of a list, without those separators that are inside strings or brackets; `None` if strings or brackets do not
/// end. A separator after the last part may be there.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    let mut characters = text.char_indices();
    while let Some((i, c)) = characters.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => (),
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.checked_sub(1)?,
            (None, _) if c == separator && depth == 0 => {
                parts.push(text[start..i].trim_ascii());
                start = i + 1;
            }
            (None, _) => (),
        }
    }
    let last = text[start..].trim_ascii();
    parts.extend((!last.is_empty()).then_some(last));
    (depth == 0 && quote.is_none()).then_some(parts)
}

/// What a string without escapes says.
fn unquoted(literal: &str) -> Option<&str> {
    let between = |quote: char| literal.strip_prefix(quote)?.strip_suffix(quote);
    between('\'').or_else(|| between('"'))
}

fn boolean(literal: &str) -> Option<bool> {
    match literal {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// The numbers of a tuple.
fn lengths(literal: &str) -> Option<Vec<usize>> {
    let inner = literal.strip_prefix('(')?.strip_suffix(')')?;
    let numbers = split(inner, ',')?;
    // In brackets without a comma a number is no tuple.
    let is_tuple = numbers.len() != 1 || inner.contains(',');
    numbers.into_iter().map(|n| n.parse().ok()).collect::<Option<_>>().filter(|_| is_tuple)
}

/// A tuple of numbers, as Python writes it.
fn tuple(numbers: &[usize]) -> String {
    match numbers {
        [one] => format!("({one},)"),
        _ => format!("({})", numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: &str, fortran: bool, shape: &[usize]) -> Header {
        Header { kind: kind.into(), fortran, shape: shape.into() }
    }

    #[test]
    fn dictionaries_are_read_in_any_order_and_with_any_space() {
        for (text, expected) in [
            (
                "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   ",
                header("'<f8'", false, &[3, 4]),
            ),
            ("{'shape':(5,),'fortran_order':True,'descr':'>u8'}", header("'>u8'", true, &[5])),
            (
                " { \"descr\" : \"<f4\" , \"fortran_order\" : False , \"shape\" : ( ) } ",
                header("\"<f4\"", false, &[]),
            ),
            (
                "{'descr': [('a, {b', '<f8'), ('it\\'s', '<i4', (2,))], 'fortran_order': False, 'shape': (1, 2, 3,)}",
                header("[('a, {b', '<f8'), ('it\\'s', '<i4', (2,))]", false, &[1, 2, 3]),
            ),
        ] {
            assert_eq!(Header::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_header_is_refused_with_the_reason() {
        let with = |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}");
        let no_tuple = |shape: &str| (with(shape), format!("has a header in which 'shape' is {shape}"));
        let refused = [
            (String::new(), "has a header that is not a dictionary".into()),
            (with("(1,)]"), "has a header that is not a dictionary".into()),
            (with("'(1,)"), "has a header that is not a dictionary".into()),
            ("{}".into(), "has a header without the key 'descr'".into()),
            ("{'descr': '<f8', 'fortran_order': True}".into(), "has a header without the key 'shape'".into()),
            ("{'descr': '<f8', 'order': True}".into(), "has a header with the unknown key 'order'".into()),
            (
                "{'descr'}".into(),
                "has a header with the entry 'descr', which has not one key and one value".into(),
            ),
            // A space of Unicode that is none of Python.
            ("{\u{a0}'shape': (1,)}".into(), "has a header with the unknown key \u{a0}'shape'".into()),
            ("{'fortran_order': 0}".into(), "has a header in which 'fortran_order' is 0".into()),
            no_tuple("(3)"),
            no_tuple("3"),
            no_tuple("[3, 4]"),
            no_tuple("(-1,)"),
            no_tuple("(1,,2)"),
            no_tuple("(,)"),
            no_tuple("(18446744073709551616,)"),
        ];
        for (text, reason) in refused {
            assert_eq!(Header::parse(&text), Err(reason), "{text}");
        }
    }

    #[test]
    fn either_order_of_bytes_is_known() {
        assert!(header("'<f8'", false, &[]).holds::<f64>() && header("\">f4\"", false, &[]).holds::<f32>());
        for other in ["'<f4'", "'f8'", "'|f8'", "<f8", "'<i8'", "'<f8", "[('a', '<f8')]", "'"] {
            assert!(!header(other, false, &[]).holds::<f64>(), "{other}");
        }
        for kind in ["'|i1'", "'<i1'"] {
            assert!(header(kind, false, &[]).holds::<i8>() && !header(kind, false, &[]).holds::<u8>());
        }
        assert_eq!(Header::of(&ndarray::arr1(&[1u8]), false).kind, "'|u1'");
        assert!(header("'>f8'", false, &[]).is_reversed() && !header("'<f8'", false, &[]).is_reversed());
    }

    #[test]
    fn elements_begin_where_memory_is_aligned() {
        for axes in 0..60 {
            let (mut bytes, own) = (Vec::new(), header("'<f8'", axes % 2 == 1, &vec![1; axes]));
            own.write(&mut bytes).unwrap();
            assert_eq!((bytes.len() % 64, &bytes[..8]), (0, &b"\x93NUMPY\x01\x00"[..]));
            let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
            let text = std::str::from_utf8(&bytes[10..]).unwrap();
            assert!(text.len() == length && text.ends_with(" \n"), "{text}");
            assert_eq!(Header::parse(text), Ok(own));
        }
        assert!(header("'<f8'", false, &vec![1; 30_000]).write(Vec::new()).is_err());
    }
}
