//! Files, by way of a temporary folder each.

use super::*;
use crate::block_on;
use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};
use std::{
    future::poll_fn,
    io::SeekFrom,
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, UNIX_EPOCH},
};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("urgency-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn read_some(file: &mut File, count: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; count];
    let count = poll_fn(|cx| Pin::new(&mut *file).poll_read(cx, &mut buffer)).await?;
    buffer.truncate(count);
    Ok(buffer)
}

async fn write_all(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = poll_fn(|cx| Pin::new(&mut *file).poll_write(cx, bytes)).await?;
        bytes = &bytes[count..];
    }
    Ok(())
}

async fn seek(file: &mut File, to: SeekFrom) -> io::Result<u64> {
    poll_fn(|cx| Pin::new(&mut *file).poll_seek(cx, to)).await
}

/// What is in a folder, in order.
async fn names(folder: &Path) -> Vec<String> {
    let mut entries = read_dir(folder).await.unwrap();
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await.unwrap() {
        assert_eq!(entry.path(), folder.join(entry.file_name()));
        names.push(entry.file_name().into_string().unwrap());
    }
    assert!(entries.next_entry().await.unwrap().is_none());
    names.sort();
    names
}

#[test]
fn what_is_written_is_read_back() {
    let folder = Folder::new("back");
    let path = folder.file("data");
    let data: Vec<u8> = (0..500_000u32).map(|n| (n % 251) as u8).collect();
    block_on(async {
        let mut file = File::create(&path).await.unwrap();
        write_all(&mut file, &data).await.unwrap();
        file.sync_all().await.unwrap();
        let mut file = File::open(&path).await.unwrap();
        let mut back = Vec::new();
        loop {
            let some = read_some(&mut file, 70_000).await.unwrap();
            if some.is_empty() {
                break;
            }
            back.extend(some);
        }
        assert!(back == data);
    });
}

/// Starts a read and drops it. Opens the file anew until the read is not done at once.
async fn with_a_dropped_read(path: &Path, count: usize) -> File {
    loop {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).open(path).await.unwrap();
        let is_pending = poll_fn(|cx| {
            let poll = Pin::new(&mut file).poll_read(cx, &mut vec![0; count]);
            Poll::Ready(poll.is_pending())
        });
        if is_pending.await {
            return file;
        }
    }
}

#[test]
fn a_dropped_read_loses_no_bytes() {
    let folder = Folder::new("dropped");
    let path = folder.file("data");
    std::fs::write(&path, b"abcdef").unwrap();
    block_on(async {
        let mut file = with_a_dropped_read(&path, 3).await;
        assert_eq!(read_some(&mut file, 2).await.unwrap(), b"ab");
        assert_eq!(read_some(&mut file, 2).await.unwrap(), b"c");
        assert_eq!(read_some(&mut file, 9).await.unwrap(), b"def");
        assert_eq!(read_some(&mut file, 9).await.unwrap(), b"");
    });
}

#[test]
fn writes_and_seeks_go_by_what_the_reader_has_taken() {
    let folder = Folder::new("position");
    let path = folder.file("data");
    std::fs::write(&path, b"0123456789").unwrap();
    block_on(async {
        let mut file = with_a_dropped_read(&path, 8).await;
        assert_eq!(read_some(&mut file, 2).await.unwrap(), b"01");
        assert_eq!(seek(&mut file, SeekFrom::Current(1)).await.unwrap(), 3);
        assert_eq!(read_some(&mut file, 1).await.unwrap(), b"3");
        write_all(&mut file, b"X").await.unwrap();
        file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"0123X56789");
    });
}

#[test]
fn a_seek_that_fails_loses_no_bytes() {
    let folder = Folder::new("failed-seek");
    let path = folder.file("data");
    std::fs::write(&path, b"abcdef").unwrap();
    block_on(async {
        let mut file = with_a_dropped_read(&path, 3).await;
        assert_eq!(read_some(&mut file, 1).await.unwrap(), b"a");
        let error = seek(&mut file, SeekFrom::Current(-100)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read_some(&mut file, 9).await.unwrap(), b"bc");
        assert_eq!(read_some(&mut file, 9).await.unwrap(), b"def");
        assert_eq!(seek(&mut file, SeekFrom::Current(-2)).await.unwrap(), 4);
        assert_eq!(read_some(&mut file, 9).await.unwrap(), b"ef");
    });
}

/// A pair of sockets is a file in which nothing can be sought.
#[test]
fn a_write_that_cannot_go_back_is_an_error_and_loses_no_bytes() {
    let (here, mut there) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut file = File::from(fs::File::from(std::os::fd::OwnedFd::from(here)));
    block_on(async {
        let mut buffer = [0; 3];
        let reading = poll_fn(|cx| {
            let reading = Pin::new(&mut file).poll_read(cx, &mut buffer);
            Poll::Ready(reading.is_pending())
        });
        assert!(reading.await, "there is nothing yet");
        io::Write::write_all(&mut there, b"abc").unwrap();
        assert_eq!(read_some(&mut file, 1).await.unwrap(), b"a");
        write_all(&mut file, b"x").await.unwrap();
        let error = file.flush().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotSeekable);
        assert_eq!(read_some(&mut file, 9).await.unwrap(), b"bc");
        write_all(&mut file, b"y").await.unwrap();
        file.flush().await.unwrap();
        let mut buffer = [0; 9];
        assert_eq!(io::Read::read(&mut there, &mut buffer).unwrap(), 1);
        assert_eq!(buffer[0], b'y');
    });
}

#[test]
fn the_error_of_a_write_is_reported_later_but_is_reported() {
    block_on(async {
        let Ok(mut file) = OpenOptions::new().write(true).open("/dev/full").await else {
            return;
        };
        let written = poll_fn(|cx| Pin::new(&mut file).poll_write(cx, b"x")).await;
        assert_eq!(written.unwrap(), 1);
        let error = file.flush().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        file.flush().await.unwrap();
    });
}

#[test]
fn folders_and_names() {
    let folder = Folder::new("names");
    block_on(async {
        let deep = folder.file("a/b/c");
        create_dir_all(&deep).await.unwrap();
        assert!(metadata(&deep).await.unwrap().is_dir());
        let (one, two) = (deep.join("one"), deep.join("two"));
        write(&one, "text").await.unwrap();
        assert_eq!(copy(&one, &two).await.unwrap(), 4);
        assert_eq!(names(&deep).await.len(), 2);
        rename(&two, deep.join("three")).await.unwrap();
        assert_eq!(read_to_string(deep.join("three")).await.unwrap(), "text");
        remove_file(&one).await.unwrap();
        let error = read(&one).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        remove_dir_all(folder.file("a")).await.unwrap();
    });
}

#[test]
fn a_dropped_operation_still_happens() {
    let folder = Folder::new("happens");
    let path = folder.file("data");
    drop(write(&path, "x"));
    while !path.exists() {
        std::thread::yield_now();
    }
}

#[test]
fn a_shared_file_is_written_through_cut_and_copied_after_the_write_under_way() {
    let folder = Folder::new("shared");
    let path = folder.file("data");
    block_on(async {
        let mut file = File::options()
            .create_new(true)
            .write(true)
            .read(true)
            .mode(0o600)
            .open(&path)
            .await
            .unwrap();
        write_all(&mut file, &[7; 100_000]).await.unwrap();
        let shared = &file; // as `BufWriter::get_ref` gives it
        let (all, data) = crate::join!(shared.sync_all(), shared.sync_data());
        all.unwrap();
        data.unwrap();
        assert_eq!(metadata(&path).await.unwrap().len(), 100_000);
        shared.set_len(10).await.unwrap();
        let mut twin = shared.try_clone().await.unwrap();
        assert_eq!(seek(&mut file, SeekFrom::Start(4)).await.unwrap(), 4);
        assert_eq!(
            read_some(&mut twin, 100).await.unwrap(),
            [7; 6],
            "one position"
        );
        let mode = std::os::unix::fs::PermissionsExt::mode;
        assert_eq!(
            mode(&file.metadata().await.unwrap().permissions()) & 0o777,
            0o600
        );
        let mut permissions = file.metadata().await.unwrap().permissions();
        permissions.set_readonly(true);
        file.set_permissions(permissions).await.unwrap();
        assert_eq!(
            mode(&metadata(&path).await.unwrap().permissions()) & 0o777,
            0o400
        );
        write_all(&mut file, b"end").await.unwrap();
        let std = file.into_std().await;
        assert_eq!(
            std.metadata().unwrap().len(),
            13,
            "the write under way has ended"
        );
    });
}

#[test]
fn times_are_set_after_the_write_under_way() {
    let folder = Folder::new("times");
    let path = folder.file("data");
    block_on(async {
        let mut file = File::create(&path).await.unwrap();
        let [read, written] = [1, 2].map(|day| UNIX_EPOCH + Duration::from_secs(day * 86_400));
        write_all(&mut file, &[7; 60_000]).await.unwrap();
        let times = FileTimes::new().set_accessed(read).set_modified(written);
        file.set_times(times).await.unwrap();
        let found = file.metadata().await.unwrap();
        assert_eq!(found.len(), 60_000);
        assert_eq!(found.modified().unwrap(), written);
        assert_eq!(found.accessed().unwrap(), read);
        write_all(&mut file, b"end").await.unwrap();
        file.set_modified(read).await.unwrap();
        assert_eq!(metadata(&path).await.unwrap().modified().unwrap(), read);
    });
}

#[test]
fn a_file_is_given_away_at_once_unless_an_operation_has_it() {
    let (reader, mut writer) = io::pipe().unwrap();
    let mut file = File::from_std(OwnedFd::from(reader).into());
    block_on(async {
        let mut read = Box::pin(read_some(&mut file, 1));
        let polled = poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        drop(read);
        let mut file = file.try_into_std().unwrap_err();
        io::Write::write_all(&mut writer, b"ab").unwrap();
        assert_eq!(read_some(&mut file, 1).await.unwrap(), b"a");
        assert!(file.try_into_std().is_ok());
    });
}

#[test]
fn the_error_of_a_write_is_found_by_the_next_call_on_the_shared_file() {
    block_on(async {
        let full = OpenOptions::new().write(true).open("/dev/full").await;
        let mut file = full.unwrap();
        write_all(&mut file, b"x").await.unwrap();
        let error = file.sync_data().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        file.flush().await.unwrap();
    });
}

#[test]
fn names_and_links_are_made_and_followed() {
    let folder = Folder::new("links");
    let [data, second, link] = ["data", "second", "link"].map(|name| folder.file(name));
    block_on(async {
        assert!(!try_exists(&data).await.unwrap());
        write(&data, "contents").await.unwrap();
        assert!(try_exists(&data).await.unwrap());
        hard_link(&data, &second).await.unwrap();
        symlink(&second, &link).await.unwrap();
        assert_eq!(read_link(&link).await.unwrap(), second);
        remove_file(&data).await.unwrap();
        assert_eq!(read(&link).await.unwrap(), b"contents");
        let mut permissions = metadata(&second).await.unwrap().permissions();
        permissions.set_readonly(true);
        set_permissions(&second, permissions).await.unwrap();
        assert!(metadata(&link).await.unwrap().permissions().readonly());
    });
}

#[test]
fn what_a_dropped_read_had_is_not_given_once_the_file_is_cut() {
    let folder = Folder::new("cut");
    let path = folder.file("data");
    block_on(async {
        write(&path, "0123456789").await.unwrap();
        let mut options = File::options();
        options.read(true).write(true);
        let mut file = loop {
            let mut file = options.open(&path).await.unwrap();
            let poll = |file: &mut File, cx: &mut Context<'_>| {
                Pin::new(file).poll_read(cx, &mut [0; 8]).is_pending()
            };
            // Else it has ended at once, and there is nothing that was not taken.
            if poll_fn(|cx| Poll::Ready(poll(&mut file, cx))).await {
                break file;
            }
        };
        file.set_len(2).await.unwrap();
        assert_eq!(read_some(&mut file, 8).await.unwrap(), b"01");
        assert_eq!(read_some(&mut file, 8).await.unwrap(), b"");
    });
}

#[test]
fn a_folder_of_several_batches_gives_each_entry_once() {
    let folder = Folder::new("batches");
    for count in [0, 1, 31, 32, 33, 64, 100] {
        let inner = folder.file(&format!("of {count}"));
        std::fs::create_dir(&inner).unwrap();
        let expected: Vec<_> = (0..count).map(|n| format!("{n:03}")).collect();
        for name in &expected {
            std::fs::write(inner.join(name), name).unwrap();
        }
        assert_eq!(block_on(names(&inner)), expected);
    }
}

#[test]
fn a_wait_for_an_entry_that_is_dropped_loses_none() {
    let folder = Folder::new("dropped");
    for n in 0..100 {
        std::fs::write(folder.file(&n.to_string()), "").unwrap();
    }
    block_on(async {
        let mut entries = read_dir(&folder.0).await.unwrap();
        let mut seen = 0;
        loop {
            // One poll, and then the future is gone.
            let next = poll_fn(|cx| Poll::Ready(entries.poll_next_entry(cx))).await;
            match next {
                Poll::Ready(Ok(Some(_))) => seen += 1,
                Poll::Ready(end) => break assert!(end.unwrap().is_none()),
                Poll::Pending => crate::yield_now().await,
            }
        }
        assert_eq!(seen, 100);
    });
}

#[test]
fn an_entry_tells_what_it_is_and_a_folder_is_made_as_asked() {
    let folder = Folder::new("made");
    let inner = folder.file("above/inner");
    block_on(async {
        let refused = DirBuilder::new().create(&inner).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&inner).await.unwrap();
        builder.create(&inner).await.unwrap();
        let mut entries = read_dir(folder.file("above")).await.unwrap();
        let entry = entries.next_entry().await.unwrap().unwrap();
        let metadata = entry.metadata().await.unwrap();
        assert!(metadata.is_dir() && entry.file_type().await.unwrap().is_dir());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
        assert_eq!(metadata.ino(), entry.ino());
        let missing = read_dir(folder.file("missing")).await.unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    });
}
