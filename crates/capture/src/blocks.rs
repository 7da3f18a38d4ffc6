//! The blocks of a pcapng file, little-endian.

use lasthop_units::Time;

/// The link type of an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Link {
    /// LINKTYPE_RAW.
    RawIp = 101,
    /// LINKTYPE_IEEE802_11_RADIOTAP.
    Radiotap = 127,
}

/// A packet's block, but for its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    pub(crate) interface: usize,
    pub(crate) at: Time,
    /// The packet's size, of which not all bytes may be kept.
    pub(crate) size: u64,
    /// epb_flags: 1 inbound, 2 outbound, 0 unknown.
    pub(crate) flags: u32,
    /// Empty: none.
    pub(crate) comment: &'a str,
}

const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const SHB_USERAPPL: u16 = 4;

/// The header of the file's one section.
pub(crate) fn section(out: &mut Vec<u8>) {
    block(out, 0x0a0d_0d0a, |out| {
        out.extend(0x1a2b_3c4d_u32.to_le_bytes());
        out.extend(1_u16.to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        // The section's length: not known.
        out.extend(u64::MAX.to_le_bytes());
        option(out, SHB_USERAPPL, b"lasthop");
        end_of_options(out);
    });
}

/// An interface, with time stamps in nanoseconds.
pub(crate) fn interface(out: &mut Vec<u8>, link: Link, name: &str, snaplen: u32) {
    block(out, 1, |out| {
        out.extend((link as u16).to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        out.extend(snaplen.to_le_bytes());
        option(out, IF_NAME, name.as_bytes());
        option(out, IF_TSRESOL, &[9]);
        end_of_options(out);
    });
}

impl Block<'_> {
    /// Writes `length` bytes of the packet; those that `bytes` lacks are zeros.
    pub(crate) fn write(&self, out: &mut Vec<u8>, bytes: &[u8], length: usize) {
        let at = self.at.as_nanos();
        block(out, 6, |out| {
            let size = u32::try_from(self.size).unwrap_or(u32::MAX);
            for word in [self.interface as u32, (at >> 32) as u32, at as u32, length as u32, size] {
                out.extend(word.to_le_bytes());
            }
            let end = out.len() + length;
            out.extend(&bytes[..bytes.len().min(length)]);
            out.resize(end.next_multiple_of(4), 0);
            if self.flags > 0 {
                option(out, EPB_FLAGS, &self.flags.to_le_bytes());
            }
            if !self.comment.is_empty() {
                option(out, OPT_COMMENT, self.comment.as_bytes());
            }
            if self.flags > 0 || !self.comment.is_empty() {
                end_of_options(out);
            }
        });
    }
}

/// A block of this type: its length stands before and after its body. All parts have whole words.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let length = ((out.len() + 4 - start) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&length);
    out.extend(length);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    // Blocks begin at whole words of the buffer.
    out.resize(out.len().next_multiple_of(4), 0);
}

fn end_of_options(out: &mut Vec<u8>) {
    out.extend([0; 4]);
}
