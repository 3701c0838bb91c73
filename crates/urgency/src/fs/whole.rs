//! Calls on a file as a whole, after the write under way: that it is on the device, its permissions, its times.

use super::{File, FileTimes};
use std::{fs, io, time::SystemTime};

impl File {
    /// Waits until everything written is on the device. If the future is dropped, nothing that was written is lost, and
    /// whether it is on the device is not known.
    ///
    /// # Errors
    /// The errors of the writes before, and of [`std::fs::File::sync_all`].
    pub async fn sync_all(&self) -> io::Result<()> {
        self.then(fs::File::sync_all).await
    }

    /// As [`sync_all`](File::sync_all), of the contents alone.
    ///
    /// # Errors
    /// The errors of the writes before, and of [`std::fs::File::sync_data`].
    pub async fn sync_data(&self) -> io::Result<()> {
        self.then(fs::File::sync_data).await
    }

    /// Changes what is permitted with the file, after the write under way. A dropped future as for
    /// [`set_len`](File::set_len).
    ///
    /// # Errors
    /// The errors of the writes before, and of [`std::fs::File::set_permissions`].
    pub async fn set_permissions(&self, permissions: fs::Permissions) -> io::Result<()> {
        self.then(move |file| file.set_permissions(permissions))
            .await
    }

    /// Changes the times of the file, after the write under way, which would change them again. A dropped future as for
    /// [`set_len`](File::set_len).
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use urgency::fs::{File, FileTimes};
    ///
    /// let path = std::env::temp_dir().join(format!("urgency-times-{}", std::process::id()));
    /// urgency::block_on(async {
    ///     let (file, day) = (File::create(&path).await?, Duration::from_secs(86_400));
    ///     let (read, written) = (SystemTime::UNIX_EPOCH + day, SystemTime::UNIX_EPOCH + 2 * day);
    ///     file.set_times(FileTimes::new().set_accessed(read).set_modified(written)).await?;
    ///     assert_eq!(file.metadata().await?.accessed()?, read);
    ///     file.set_modified(read).await?;
    ///     assert_eq!(file.metadata().await?.modified()?, read);
    ///     std::fs::remove_file(&path)
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// The errors of the writes before, and of [`std::fs::File::set_times`].
    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        self.then(move |file| file.set_times(times)).await
    }

    /// [`set_times`](File::set_times) with the time of the last change alone.
    ///
    /// # Errors
    /// The errors of the writes before, and of [`std::fs::File::set_modified`].
    pub async fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time)).await
    }
}
