//! How a file is opened.

use super::{File, with_path};
use std::{fs, io, os::unix::fs::OpenOptionsExt, path::Path};

/// How a file is opened: as [`std::fs::OpenOptions`], with an asynchronous [`open`](OpenOptions::open).
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// use urgency::fs::OpenOptions;
///
/// let mut options = OpenOptions::new();
/// options.append(true).create(true);
/// // Readable for the group; a symbolic link in its place is refused.
/// options.mode(0o640).custom_flags(libc::O_NOFOLLOW);
/// let log = options.open("log").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions(fs::OpenOptions);

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! options {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])*
        pub fn $name(&mut self, $name: bool) -> &mut Self {
            self.0.$name($name);
            self
        })*
    };
}

impl OpenOptions {
    /// Nothing is allowed yet.
    pub fn new() -> Self {
        OpenOptions(fs::OpenOptions::new())
    }

    options! {
        /// To be read.
        read
        /// To be written.
        write
        /// To be written at its end, always.
        append
        /// To be emptied.
        truncate
        /// To be made if it does not exist.
        create
        /// To be made; it must not exist.
        create_new
    }

    /// What is permitted with a file that is made: 0o666 otherwise, less the process's mask.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.0.mode(mode);
        self
    }

    /// More flags of the kernel's `open`. The access mode is not theirs to change.
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.0.custom_flags(flags);
        self
    }

    /// Starts to open the file. If the future is dropped, the file is made or emptied all the same, if that was asked
    /// for.
    ///
    /// # Errors
    /// The future gives the errors of [`std::fs::OpenOptions::open`].
    pub fn open<P: AsRef<Path>>(
        &self,
        path: P,
    ) -> impl Future<Output = io::Result<File>> + Send + use<P> {
        let options = self.0.clone();
        let opening = with_path(path, move |path| options.open(path));
        async move { Ok(File::from(opening.await?)) }
    }
}

impl From<fs::OpenOptions> for OpenOptions {
    fn from(options: fs::OpenOptions) -> Self {
        OpenOptions(options)
    }
}
