//! A law's private state by the names in its C struct, from the object's own type information (BTF). So new fields of a
//! struct appear by themselves.

use super::LawName;
use libbpf_rs::HasSize;
use libbpf_rs::btf::types::{Array, Composite, Int, IntEncoding, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, BtfKind, BtfType};

/// A number or array of a law's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// As in the C struct; nested members after a dot.
    pub name: String,
    /// Its present value.
    pub value: Value,
}

/// The value of a [`Field`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number of any width.
    Number(i128),
    /// An array.
    Numbers(Vec<i128>),
}

/// The fields of the law in these bytes of a `struct lh_law`.
pub(crate) fn decode(btf: &Btf<'_>, law: LawName, bytes: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    let Some(whole) = btf.type_by_name::<Struct<'_>>("lh_law") else { return fields };
    // the law's own member, in the union behind the name
    for member in whole.iter() {
        let (Some(at), None) = (offset(member.attr), member.name) else { continue };
        let Some(laws) = btf.type_by_id::<BtfType<'_>>(member.ty) else { continue };
        let Ok(laws) = Composite::try_from(laws) else { continue };
        let own = laws.iter().find(|member| member.name.is_some_and(|name| name == law.identifier()));
        let kind = own.and_then(|own| btf.type_by_id::<BtfType<'_>>(own.ty));
        if let (Some(kind), Some(state)) = (kind, bytes.get(at..)) {
            flatten(btf, kind, "", state, &mut fields);
        }
    }
    fields
}

fn flatten(btf: &Btf<'_>, kind: BtfType<'_>, name: &str, bytes: &[u8], fields: &mut Vec<Field>) {
    let kind = kind.skip_mods_and_typedefs();
    match kind.kind() {
        BtfKind::Struct | BtfKind::Union => {
            let Ok(members) = Composite::try_from(kind) else { return };
            for member in members.iter() {
                let own = member.name.map(|name| name.to_string_lossy()).unwrap_or_default();
                let joint = if name.is_empty() || own.is_empty() { "" } else { "." };
                let (Some(at), Some(kind)) = (offset(member.attr), btf.type_by_id(member.ty)) else { continue };
                if let Some(bytes) = bytes.get(at..) {
                    flatten(btf, kind, &format!("{name}{joint}{own}"), bytes, fields);
                }
            }
        }
        BtfKind::Array => {
            let Ok(array) = Array::try_from(kind) else { return };
            let element = array.contained_type().skip_mods_and_typedefs();
            let Ok(int) = Int::try_from(element) else {
                return;
            };
            let size = int.size();
            let numbers = (0..array.capacity()).filter_map(|index| number(&int, bytes.get(index * size..)?)).collect();
            fields.push(Field { name: name.to_owned(), value: Value::Numbers(numbers) });
        }
        _ => {
            if let Some(value) = Int::try_from(kind).ok().and_then(|int| number(&int, bytes)) {
                fields.push(Field { name: name.to_owned(), value: Value::Number(value) });
            }
        }
    }
}

/// In bytes; `None` for bit fields, which the laws do not use.
fn offset(attr: MemberAttr) -> Option<usize> {
    match attr {
        MemberAttr::Normal { offset } => Some(offset as usize / 8),
        MemberAttr::BitField { .. } => None,
    }
}

fn number(int: &Int<'_>, bytes: &[u8]) -> Option<i128> {
    let size = int.size();
    let mut wide = [0; 8];
    wide.get_mut(..size)?.copy_from_slice(bytes.get(..size)?);
    let value = u64::from_le_bytes(if cfg!(target_endian = "little") { wide } else { return None });
    let unused = 64 - 8 * u32::try_from(size).ok()?;
    Some(if matches!(int.encoding, IntEncoding::Signed) {
        i128::from((value << unused).cast_signed() >> unused)
    } else {
        i128::from(value)
    })
}
