//! Runs the programs of a BPF object by BPF_PROG_TEST_RUN, over maps of one value each.

use libbpf_rs::{ErrorKind, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A loaded object, of which nothing is registered.
pub struct Loaded(Object);

impl Loaded {
    /// Loads an object. Prints a line and returns `None` if BPF programs are not permitted.
    pub fn new(object: &[u8]) -> Option<Loaded> {
        let mut builder = ObjectBuilder::default();
        match builder.open_memory(object).and_then(|open| open.load()) {
            Ok(object) => Some(Loaded(object)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                println!("skipped: BPF programs are not permitted here");
                None
            }
            Err(error) => panic!("{error:#}"),
        }
    }

    pub fn put(&self, map: &str, value: &(impl IntoBytes + Immutable)) {
        let found = self.0.maps().find(|m| m.name() == map).expect(map);
        let key = 0u32.to_ne_bytes();
        let put = found.update(&key, value.as_bytes(), MapFlags::ANY);
        put.expect("its value is of that size");
    }

    pub fn get<T: FromBytes>(&self, map: &str) -> T {
        let found = self.0.maps().find(|m| m.name() == map).expect(map);
        let bytes = found.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let bytes = bytes.expect("it can be read").expect("an array has all");
        T::read_from_bytes(&bytes).expect("its value is of that size")
    }

    /// Runs a program once with `asked` in the map of that name. Returns that map's value after it.
    pub fn run<T: IntoBytes + Immutable + FromBytes>(&self, program: &str, asked: T) -> T {
        self.put("asked", &asked);
        let found = self.0.progs_mut().find(|p| p.name() == program);
        let done = found
            .expect(program)
            .test_run(ProgramInput::default())
            .expect("it runs");
        assert_eq!(done.return_value, 0, "{program}");
        self.get("asked")
    }
}
