//! Numbers and texts in the forms that clients write; any other form is not plain.
#![forbid(unsafe_code)]

/// Reads bytes from the front of a slice. Every method returns None where the bytes are not as expected.
#[derive(Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    pub fn expect(&mut self, bytes: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(bytes)?;
        Some(())
    }

    pub fn int16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.array()?))
    }

    pub fn int32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.array()?))
    }

    /// An integer of msgpack, in any of its forms.
    pub fn msgpack_integer(&mut self) -> Option<i64> {
        Some(match self.byte()? {
            byte @ 0..=0x7F => i64::from(byte),
            byte @ 0xE0.. => i64::from(byte as i8),
            0xCC => i64::from(self.byte()?),
            0xCD => i64::from(u16::from_be_bytes(self.array()?)),
            0xCE => i64::from(u32::from_be_bytes(self.array()?)),
            0xCF => i64::try_from(u64::from_be_bytes(self.array()?)).ok()?,
            0xD0 => i64::from(self.byte()? as i8),
            0xD1 => i64::from(i16::from_be_bytes(self.array()?)),
            0xD2 => i64::from(i32::from_be_bytes(self.array()?)),
            0xD3 => i64::from_be_bytes(self.array()?),
            _ => return None,
        })
    }

    /// A text of msgpack in ASCII.
    pub fn msgpack_text(&mut self) -> Option<&'a [u8]> {
        let length = match self.byte()? {
            byte @ 0xA0..=0xBF => usize::from(byte & 0x1F),
            0xD9 => usize::from(self.byte()?),
            0xDA => usize::from(u16::from_be_bytes(self.array()?)),
            _ => return None,
        };
        self.take(length).filter(|text| text.is_ascii())
    }

    /// A number literal of JSON.
    pub fn json_int32(&mut self) -> Option<i32> {
        let end = self
            .rest
            .iter()
            .position(|byte| !matches!(byte, b'-' | b'0'..=b'9'))?;
        i32::try_from(integer(self.take(end)?)?).ok()
    }

    /// A JSON text in ASCII without escapes.
    pub fn json_text(&mut self) -> Option<&'a [u8]> {
        self.expect(b"\"")?;
        let end = self.rest.iter().position(|&byte| is_special(byte))?;
        let text = self.take(end)?;
        self.expect(b"\"")?;
        Some(text)
    }

    /// A JSON text in ASCII, also with escapes of ASCII characters; it is appended to `text`.
    pub fn json_escaped_text(&mut self, text: &mut Vec<u8>) -> Option<()> {
        self.expect(b"\"")?;
        loop {
            let end = self.rest.iter().position(|&byte| is_special(byte))?;
            text.extend_from_slice(self.take(end)?);
            match self.byte()? {
                b'"' => return Some(()),
                b'\\' => text.push(self.escaped()?),
                _ => return None,
            }
        }
    }

    fn escaped(&mut self) -> Option<u8> {
        Some(match self.byte()? {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.expect(b"00")?;
                let high = hexadecimal(self.byte()?)?;
                let low = hexadecimal(self.byte()?)?;
                // Two bytes of UTF-8 from here on.
                if high > 7 {
                    return None;
                }
                high << 4 | low
            }
            _ => return None,
        })
    }
}

/// Whether a byte ends a run of characters that stand for themselves.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..=0x1F | 0x80..)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

/// The number of a text in its shortest decimal form.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_shortest = match digits {
        [] => false,
        [b'0'] => digits.len() == text.len(),
        [first, ..] => *first != b'0',
    };
    if !is_shortest || digits.len() > 19 {
        return None;
    }
    let mut value: i64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Negative, because the least number has no positive counterpart.
        value = value
            .checked_mul(10)?
            .checked_sub(i64::from(digit - b'0'))?;
    }
    if digits.len() < text.len() {
        Some(value)
    } else {
        value.checked_neg()
    }
}
