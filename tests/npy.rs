//! Files of NumPy's format: what is written is read, what is wrong is said, and what was there stays if a write fails.

use std::fs;
use std::path::{Path, PathBuf};

use ndarray::{Array, Array2, Dimension, Ix0, Ix1, Ix2, Ix3, IxDyn, ShapeBuilder, array, s};
use random_features::{Error, npy};

/// An empty folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("random-features-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        fs::read_dir(&self.0).unwrap().map(name).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file of version 1.0 by hand.
fn by_hand(path: &Path, header: &str, elements: &[u8]) {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16 + 1).to_le_bytes());
    bytes.extend(header.bytes().chain([b'\n']).chain(elements.iter().copied()));
    fs::write(path, bytes).unwrap();
}

#[track_caller]
fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Npy { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn round_trip<A: npy::NpyElement + PartialEq + std::fmt::Debug, D: Dimension>(array: Array<A, D>) {
    let folder = Folder::new(&format!("round-{}-{}", std::any::type_name::<A>(), array.ndim()));
    let path = folder.join("array.npy");
    npy::write(&path, &array).unwrap();
    assert_eq!(npy::read::<A, D>(&path).unwrap(), array);
    assert_eq!(npy::read::<A, IxDyn>(&path).unwrap(), array.into_dyn());
    assert_eq!(folder.names(), ["array.npy"]);
}

#[test]
fn what_is_written_is_read() {
    for number in [f64::MIN_POSITIVE, -0.1, f64::INFINITY] {
        round_trip(Array::<f64, Ix0>::from_elem((), number));
    }
    round_trip(array![1.5f32, f32::MAX]);
    round_trip(array![u64::MAX, 0]);
    round_trip(Array::<f64, Ix1>::zeros(0));
    round_trip(Array::<f32, Ix2>::from_shape_fn((3, 5), |(i, j)| i as f32 / (j + 1) as f32));
    round_trip(Array::<f64, Ix2>::zeros((0, 5)));
    round_trip(Array::<u64, Ix3>::from_shape_fn((2, 3, 4), |(i, j, k)| (i * 100 + j * 10 + k) as u64));
    let folder = Folder::new("nan");
    npy::write(folder.join("a"), &array![f64::NAN]).unwrap();
    assert!(npy::read::<f64, Ix1>(folder.join("a")).unwrap()[0].is_nan());
}

#[test]
fn any_layout_is_written() {
    let folder = Folder::new("layouts");
    let path = folder.join("array.npy");
    let a = Array2::from_shape_fn((6, 9), |(i, j)| (i * 10 + j) as f64);
    let mut fortran = Array2::zeros((6, 9).f());
    fortran.assign(&a);
    let empty = a.slice(s![..0, 2..]);
    let wild = [a.slice(s![..;2, 1..]), a.slice(s![..;-1, ..;-3]), empty, empty.reversed_axes()];
    for view in [fortran.view(), a.t()].into_iter().chain(wild) {
        npy::write(&path, &view).unwrap();
        assert_eq!(npy::read::<f64, Ix2>(&path).unwrap(), view);
    }
}

#[test]
fn numpys_own_files_are_read() {
    let folder = Folder::new("numpy");
    let path = folder.join("big.npy");
    let bytes: Vec<u8> = [1.0f64, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_be_bytes()).collect();
    by_hand(&path, "{'descr': '>f8', 'fortran_order': True, 'shape': (2, 2), }", &bytes);
    assert_eq!(npy::read::<f64, Ix2>(&path).unwrap(), array![[1.0, 3.0], [2.0, 4.0]]);
}

#[test]
fn numbers_are_converted_only_when_asked() {
    let folder = Folder::new("convert");
    let (wide, narrow) = (folder.join("wide.npy"), folder.join("narrow.npy"));
    npy::write(&wide, &array![0.1f64, 1e300]).unwrap();
    npy::write(&narrow, &array![0.1f32]).unwrap();
    assert_eq!(npy::read_as::<f32, Ix1>(&wide).unwrap(), array![0.1f32, f32::INFINITY]);
    assert_eq!(npy::read_as::<f64, Ix1>(&wide).unwrap(), array![0.1f64, 1e300]);
    assert_eq!(npy::read_as::<f64, Ix1>(&narrow).unwrap(), array![f64::from(0.1f32)]);
    assert_eq!(npy::read_as::<f32, Ix1>(&narrow).unwrap(), array![0.1f32]);
    assert_eq!(reason(npy::read::<f32, Ix1>(&wide)), "holds elements of type '<f8', not f32");
    assert_eq!(reason(npy::read::<u64, Ix1>(&narrow)), "holds elements of type '<f4', not u64");
    by_hand(&wide, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", &[0; 8]);
    let expected = "holds elements of type '<c8', not f32, f64 or integers";
    assert_eq!(reason(npy::read_as::<f32, Ix1>(&wide)), expected);
}

/// Labels as NumPy has them: int64 by default, and any other integers.
#[test]
fn labels_are_read_from_integers_of_any_type() {
    let folder = Folder::new("labels");
    let path = folder.join("labels.npy");
    macro_rules! read_from {
        ($($Integer:ty)*) => {$(
            npy::write(&path, &array![2 as $Integer, 0, 127]).unwrap();
            assert_eq!(npy::read_labels(&path).unwrap(), [2, 0, 127]);
            assert_eq!(npy::read::<$Integer, Ix1>(&path).unwrap(), array![2 as $Integer, 0, 127]);
            assert_eq!(npy::read_as::<f32, Ix1>(&path).unwrap(), array![2.0f32, 0.0, 127.0]);
            assert_eq!(npy::read_as::<f64, Ix1>(&path).unwrap(), array![2.0f64, 0.0, 127.0]);
        )*};
    }
    read_from!(i8 i16 i32 i64 u8 u16 u32 u64);
    let header = |kind: &str| format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (3,), }}");
    by_hand(&path, &header("|b1"), &[1, 0, 1]);
    assert_eq!(npy::read_labels(&path).unwrap(), [1, 0, 1]);
    by_hand(&path, &header(">i4"), &[0, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0, 0]);
    assert_eq!(npy::read_labels(&path).unwrap(), [256, 9, 0]);

    npy::write(&path, &array![0i64, 3, -1, -2]).unwrap();
    assert_eq!(reason(npy::read_labels(&path)), "holds the label -1 in row 2, but labels are counted from 0");
    npy::write(&path, &array![[0i64, 3]]).unwrap();
    assert_eq!(reason(npy::read_labels(&path)), "holds an array of dimension 2, not 1");
    npy::write(&path, &array![0.0, 1.0]).unwrap();
    assert_eq!(reason(npy::read_labels(&path)), "holds elements of type '<f8', not integers");
}

/// Integers become numbers of a scalar only where none is rounded.
#[test]
fn integers_are_read_as_numbers_where_that_is_exact() {
    let folder = Folder::new("integers");
    let path = folder.join("integers.npy");
    let (least, most) = (-(1i64 << 53), 1i64 << 24);
    npy::write(&path, &array![[least, most], [-1, 0]]).unwrap();
    assert_eq!(npy::read_as::<f64, Ix2>(&path).unwrap(), array![[least as f64, most as f64], [-1.0, 0.0]]);
    assert_eq!(npy::read_as::<f32, Ix2>(&path).unwrap()[[0, 0]], least as f32);
    npy::write(&path, &array![most, most + 1]).unwrap();
    assert_eq!(npy::read_as::<f64, Ix1>(&path).unwrap()[1], 16_777_217.0);
    assert_eq!(reason(npy::read_as::<f32, Ix1>(&path)), "holds the integer 16777217, which f32 would round");
    for (integers, first) in
        [(array![1u64 << 53, (1 << 53) + 1], "9007199254740993"), (array![u64::MAX], "18446744073709551615")]
    {
        npy::write(&path, &integers).unwrap();
        let expected = format!("holds the integer {first}, which f64 would round");
        assert_eq!(reason(npy::read_as::<f64, Ix1>(&path)), expected);
    }
    npy::write(&path, &array![i64::MIN]).unwrap();
    assert_eq!(npy::read_as::<f64, Ix1>(&path).unwrap(), array![i64::MIN as f64]);
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new("wrong");
    let path = folder.join("array.npy");
    let missing = npy::read::<f64, Ix1>(&path).unwrap_err().to_string();
    assert!(missing.contains("array.npy: ") && missing.contains("No such file"), "{missing}");
    assert!(npy::read::<f64, Ix1>(&folder.0).is_err());

    npy::write(&path, &Array2::<f64>::zeros((2, 3))).unwrap();
    assert_eq!(reason(npy::read::<f64, Ix1>(&path)), "holds an array of dimension 2, not 1");

    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        reason(npy::read::<f64, Ix2>(&path));
        reason(npy::read_as::<f32, Ix2>(&path));
    }
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    assert!(reason(npy::read::<f64, Ix2>(&path)).contains("49 bytes"));
    for text in ["", "1,2,3\n4,5,6\n", "\u{93}NUMPY"] {
        fs::write(&path, text).unwrap();
        reason(npy::read::<f64, Ix2>(&path));
    }
}

/// A header that promises more than memory holds is refused before memory is asked for.
#[test]
fn headers_may_lie() {
    let folder = Folder::new("lie");
    let path = folder.join("array.npy");
    let lies = [
        "(1152921504606846975,)",
        "(4294967296, 4294967296)",
        "(9223372036854775808, 2)",
        "(1000000000000,)",
    ];
    for shape in lies {
        by_hand(&path, &format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"), &[0; 16]);
        let reason = reason(npy::read::<f64, IxDyn>(&path));
        assert!(reason.starts_with("has 16 bytes of elements"), "{reason}");
    }
    for header in [
        "",
        "{}",
        "{'descr': '<f8'}",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
        "(",
    ] {
        by_hand(&path, header, &[0; 8]);
        reason(npy::read::<f64, Ix1>(&path));
    }
}

#[test]
fn what_was_there_stays_if_a_write_fails() {
    let folder = Folder::new("atomic");
    let path = folder.join("array.npy");
    npy::write(&path, &array![1.0f64]).unwrap();
    npy::write(&path, &array![2.0f64, 3.0]).unwrap();
    assert_eq!(npy::read::<f64, Ix1>(&path).unwrap(), array![2.0, 3.0]);

    // A folder cannot be replaced by a file.
    let inner = folder.join("folder");
    fs::create_dir(&inner).unwrap();
    reason(npy::write(&inner, &array![1.0f64]));
    reason(npy::write(folder.join("missing").join("array.npy"), &array![1.0f64]));
    reason(npy::write(folder.join(".."), &array![1.0f64]));
    reason(npy::write("", &array![1.0f64]));
    let mut names = folder.names();
    names.sort();
    assert_eq!(names, ["array.npy", "folder"]);
    assert_eq!(fs::read_dir(inner).unwrap().count(), 0);
}

/// An array without elements whose other lengths no array can have.
#[test]
fn impossible_shapes_without_elements_are_errors() {
    let folder = Folder::new("impossible");
    let path = folder.join("array.npy");
    let shapes = [
        "(0, 18446744073709551615)",
        "(0, 9223372036854775807, 9223372036854775807)",
        "(0, 2305843009213693952)",
    ];
    for shape in shapes {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
        by_hand(&path, &header, &[]);
        assert!(reason(npy::read::<f64, IxDyn>(&path)).contains("not an array of shape"), "{shape}");
    }
    by_hand(&path, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0, 5), }", &[]);
    assert_eq!(npy::read::<f64, IxDyn>(&path).unwrap().shape(), [3, 0, 5]);
}

#[test]
fn long_names_are_written() {
    let folder = Folder::new("long");
    let name = "n".repeat(245) + ".npy";
    npy::write(folder.join(&name), &array![1.0, 2.0]).unwrap();
    assert_eq!(folder.names(), [name]);
}

#[cfg(unix)]
#[test]
fn permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("permissions");
    let path = folder.join("array.npy");
    for mode in [0o600, 0o640, 0o444] {
        npy::write(&path, &array![1.0]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        npy::write(&path, &array![2.0]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        assert_eq!(npy::read::<f64, Ix1>(&path).unwrap(), array![2.0]);
    }
}

/// Fourteen bytes that state a header of four gigabytes: nothing is allocated for what the file does not hold.
#[test]
fn headers_longer_than_the_file_are_errors() {
    let folder = Folder::new("header");
    let path = folder.join("array.npy");
    for (version, length) in [(2u8, u32::MAX), (3, u32::MAX), (2, 3)] {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        bytes.extend(length.to_le_bytes());
        bytes.extend(b"{}");
        fs::write(&path, bytes).unwrap();
        let expected = format!("has a header of {length} bytes, of which the file holds 2");
        assert_eq!(reason(npy::read::<f64, Ix1>(&path)), expected);
        assert_eq!(reason(npy::read_as::<f32, Ix1>(&path)), expected);
    }
    fs::write(&path, b"\x93NUMPY\x01\x00\xff\xff{}").unwrap();
    assert_eq!(
        reason(npy::read::<f64, Ix1>(&path)),
        "has a header of 65535 bytes, of which the file holds 2"
    );
    for short in [&b"\x93NUMPY\x01"[..], b"\x93NUMPY\x02\x00\x01", b""] {
        fs::write(&path, short).unwrap();
        assert_eq!(reason(npy::read::<f64, Ix1>(&path)), "ends before its header");
    }
}

/// Without the end of its line, a header would give its last bytes to the elements, and the lengths would still agree.
#[test]
fn headers_of_a_wrong_length_are_errors() {
    let folder = Folder::new("length");
    let path = folder.join("array.npy");
    npy::write(&path, &array![1.0f64, 2.0]).unwrap();
    let whole = fs::read(&path).unwrap();
    for shift in 1..16 {
        let mut bytes = whole[..whole.len() - shift].to_vec();
        bytes[8] -= shift as u8;
        fs::write(&path, bytes).unwrap();
        assert_eq!(reason(npy::read::<f64, Ix1>(&path)), "has a header that does not end with a line");
    }
}

#[test]
fn headers_not_in_utf8_are_errors() {
    let folder = Folder::new("latin");
    let path = folder.join("array.npy");
    by_hand(&path, "{'descr': [('?', '<f8')], 'fortran_order': False, 'shape': (1,), }", &[0; 8]);
    let latin = fs::read(&path).unwrap().into_iter().map(|byte| if byte == b'?' { 0xe9 } else { byte });
    fs::write(&path, latin.collect::<Vec<u8>>()).unwrap();
    assert_eq!(reason(npy::read::<f64, Ix1>(&path)), "has a header that is not in UTF-8");
}

#[test]
fn threads_may_write_the_same_file() {
    let folder = Folder::new("at-once");
    let (path, array) = (folder.join("a.npy"), Array2::<f64>::ones((300, 300)));
    let written: Vec<bool> = std::thread::scope(|scope| {
        let write = || (0..20).all(|_| npy::write(&path, &array).is_ok());
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(write)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(written, [true; 8]);
}
