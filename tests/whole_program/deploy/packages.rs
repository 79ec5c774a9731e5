//! The packages of `deploy/release`, made of the program under test, installed for real, and started.

use super::super::server::Server;
use super::super::support::{Folder, HIDDEN, lines, program, root};
use super::tool;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Scenario: packages are made. The tarball is unpacked, the Debian package goes into an empty root, and the wheel into
/// an empty virtual environment; each program that this brings is started as a server.
/// Guarantee: checksums fit, everything that is promised is in its place, and every program takes a request and stops.
#[test]
fn what_is_packed_can_be_installed_and_started() {
    let folder = Folder::new();
    let packages = Packages::build(folder.path());
    let installed = [packages.unpack_tarball(), packages.install_debian(), packages.install_wheel()];
    for program in installed {
        let version = tool(program.to_str().expect("a path"), &["--version"], folder.path());
        assert_eq!(version.trim(), concat!("faultline ", env!("CARGO_PKG_VERSION")), "{}", program.display());
        let home = Folder::new();
        let server = Server::run(&home, Command::new(&program), &[]);
        server.post_lines(&lines(&[HIDDEN])).is(200);
        assert_eq!(server.dump("events").len(), 1, "{}", program.display());
        assert!(server.stop().success());
    }
}

/// A folder with packages, and places to install them.
struct Packages {
    folder: PathBuf,
}

impl Packages {
    fn build(folder: &Path) -> Self {
        let output = folder.join("dist");
        let script = root().join("deploy/release/build");
        let arguments = ["--skip-deny", "--binary", program(), "--output", path(&output)];
        tool(path(&script), &arguments, root());
        let checked = tool("sha256sum", &["--check", "SHA256SUMS"], &output);
        assert_eq!(checked.matches(": OK").count(), 3, "{checked}");
        Self { folder: folder.to_owned() }
    }

    /// Returns the one package with this ending.
    fn package(&self, ending: &str) -> PathBuf {
        let files = fs::read_dir(self.folder.join("dist")).expect("packages").flatten();
        let mut files = files.map(|file| file.path()).filter(|file| path(file).ends_with(ending));
        let found = files.next().unwrap_or_else(|| panic!("no package ends with {ending}"));
        assert_eq!(files.next(), None, "several packages end with {ending}");
        found
    }

    fn unpack_tarball(&self) -> PathBuf {
        let target = self.folder.join("tarball");
        fs::create_dir(&target).expect("a folder");
        tool(
            "tar",
            &["--extract", "--file", path(&self.package(".tar.gz")), "--strip-components=1"],
            &target,
        );
        for file in [
            "LICENSE",
            "README.md",
            "faultline.toml",
            "man/faultline-serve.1",
            "completions/_faultline",
            "systemd/faultline.service",
        ] {
            assert!(target.join(file).is_file(), "{file}");
        }
        target.join("faultline")
    }

    fn install_debian(&self) -> PathBuf {
        let target = self.folder.join("debian");
        fs::create_dir_all(target.join("var/lib/dpkg/info")).expect("a folder");
        for file in ["status", "available"] {
            fs::write(target.join("var/lib/dpkg").join(file), "").expect("an empty database");
        }
        fs::create_dir(target.join("etc")).expect("a folder");
        let root = format!("--root={}", target.display());
        // That root has no libraries; scripts run with those of this machine.
        let options = ["--force-depends", "--force-script-chrootless", "--install"];
        let package = self.package(".deb");
        tool("dpkg", &[&[&*root], &options[..], &[path(&package)]].concat(), &self.folder);
        for file in [
            "usr/lib/systemd/system/faultline.service",
            "usr/lib/sysusers.d/faultline.conf",
            "usr/share/man/man1/faultline-sql.1.gz",
            "usr/share/bash-completion/completions/faultline",
            "usr/share/doc/faultline/copyright",
        ] {
            assert!(target.join(file).is_file(), "{file}");
        }
        let users = fs::read_to_string(target.join("etc/passwd")).expect("users");
        assert!(users.contains("\nfaultline:") || users.starts_with("faultline:"), "{users}");
        let program = target.join("usr/bin/faultline");
        let settings = target.join("etc/faultline/faultline.toml");
        tool(path(&program), &["check", "--config", path(&settings)], &self.folder);
        program
    }

    fn install_wheel(&self) -> PathBuf {
        let target = self.folder.join("venv");
        tool("python3", &["-m", "venv", "--without-pip", path(&target)], &self.folder);
        let (python, wheel) = (target.join("bin/python"), self.package(".whl"));
        let pip = root().join("target/clients/bin/python");
        let arguments =
            ["-m", "pip", "--python", path(&python), "install", "--quiet", "--no-index", path(&wheel)];
        tool(path(&pip), &arguments, &self.folder);
        let imported = "import importlib.metadata; print(importlib.metadata.version('faultline'))";
        assert_eq!(tool(path(&python), &["-c", imported], &self.folder).trim(), env!("CARGO_PKG_VERSION"));
        target.join("bin/faultline")
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of UTF-8")
}
