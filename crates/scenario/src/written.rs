//! The keys of a scenario as written, to be run again with other keys set: what follows from a key, such as the stack from the era, is not
//! there, and follows from the other key.
//!
//! Paths of headers and of files of numbers are made absolute, so that the keys mean the same in any folder.

use crate::keys::{ChangeKeys, HostKeys, ScenarioKeys};
use crate::lists::files_of;
use crate::scenario::Scenario;
use lasthop_keys::{Document, Path, key};
use toml::{Table, Value};

/// The keys of the file and of the overrides, with absolute paths and with the name, which otherwise is that of the file.
pub(crate) fn written(document: &Document) -> Table {
    let mut table = document.written().clone();
    let name = key!(ScenarioKeys, name);
    if let Some(given) = document.table.get(name) {
        table.insert(name.to_owned(), given.clone());
    }
    for (at, block) in blocks(&mut table, key!(ScenarioKeys, changes)) {
        place(document, block, &at, key!(ChangeKeys, trace));
    }
    for (at, host) in blocks(&mut table, key!(ScenarioKeys, hosts)) {
        let law = key!(HostKeys, congestion_control);
        if host.get(law).and_then(Value::as_str).is_some_and(|law| law.ends_with(".h")) {
            place(document, host, &at, law);
        }
        let flows = at.key(key!(HostKeys, flows));
        for (number, flow) in tables(host, key!(HostKeys, flows)).enumerate() {
            for file in files_of(flow).map(|(file, _)| file).collect::<Vec<_>>() {
                place(document, flow, &flows.index(number), file);
            }
        }
    }
    table
}

impl Scenario {
    /// The keys that its file or table and its overrides set, without defaults, but with its name. What follows from a key follows
    /// from another value of it, too. Paths of headers, traces and lists are absolute.
    pub const fn written(&self) -> &Table {
        &self.written
    }

    /// The same for runs that set these keys, dotted. Has what was read from traces and lists, not their paths, unless such a run may
    /// read something else: where the keys are of them, or of the length of the run, up to which they are read.
    pub fn written_for<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> serde_json::Value {
        let set: Vec<&str> = keys.into_iter().flat_map(|key| key.split(['.', '[', ']'])).collect();
        let sets = |key: &str| set.contains(&key);
        let mut table = self.written.clone();
        if !sets(key!(ScenarioKeys, duration_s)) {
            self.put_what_was_read(&mut table, &sets);
        }
        if !sets(key!(HostKeys, congestion_control)) {
            self.put_digests(&mut table);
        }
        serde_json::to_value(table).expect("a checked scenario has finite numbers and text only")
    }

    /// Writes beside each law of one's own which one it was.
    fn put_digests(&self, table: &mut Table) {
        let (hosts, digest) = (key!(ScenarioKeys, hosts), key!(HostKeys, law_digest));
        let read = self.table.get(hosts).and_then(Value::as_array).into_iter().flatten();
        for (host, read) in tables(table, hosts).zip(read) {
            if let Some(own) = read.get(digest) {
                host.insert(digest.to_owned(), own.clone());
            }
        }
    }

    /// Puts it in the place of paths, but in lists that `sets` knows.
    fn put_what_was_read(&self, table: &mut Table, sets: &dyn Fn(&str) -> bool) {
        let changes = key!(ScenarioKeys, changes);
        let has_trace = tables(table, changes).any(|block| block.contains_key(key!(ChangeKeys, trace)));
        if has_trace && !sets(changes) {
            match self.table.get(changes) {
                Some(read) => _ = table.insert(changes.to_owned(), read.clone()),
                None => _ = table.remove(changes),
            }
        }
        let (hosts, flows) = (key!(ScenarioKeys, hosts), key!(HostKeys, flows));
        if !sets(flows) {
            let read = self.table.get(hosts).and_then(Value::as_array).into_iter().flatten();
            for (host, read) in tables(table, hosts).zip(read) {
                let read = read.get(flows).and_then(Value::as_array).into_iter().flatten();
                for (flow, read) in tables(host, flows).zip(read) {
                    for (file, as_text) in files_of(flow).collect::<Vec<_>>() {
                        if let Some(text) = read.get(as_text) {
                            flow.remove(file);
                            flow.insert(as_text.to_owned(), text.clone());
                        }
                    }
                }
            }
        }
    }
}

fn tables<'a>(table: &'a mut Table, list: &str) -> impl Iterator<Item = &'a mut Table> {
    let list = table.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_table_mut)
}

fn blocks<'a>(table: &'a mut Table, list: &'static str) -> impl Iterator<Item = (Path, &'a mut Table)> {
    tables(table, list).enumerate().map(move |(index, block)| (Path::top(list).index(index), block))
}

/// Makes the path at a key of this table absolute, if there is one.
fn place(document: &Document, table: &mut Table, at: &Path, key: &str) {
    let Some(folder) = document.folder_at(&at.key(key)) else { return };
    let Some(name) = table.get(key).and_then(Value::as_str) else { return };
    let place = std::path::absolute(folder.join(name)).ok();
    if let Some(place) = place.as_ref().and_then(|place| place.to_str()) {
        table.insert(key.to_owned(), place.into());
    }
}
