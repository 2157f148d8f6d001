import Foundation
import Testing

@testable import SynheartAuth

/// The directory of records and keys: the files that it reads, treats as changed, and removes.
@Suite final class PrivateDirectoryTests {
    private let parent = NSTemporaryDirectory() + "synheart-auth-tests/\(UUID().uuidString)"
    private let directory: PrivateDirectory

    init() { directory = PrivateDirectory(path: parent + "/a/b") }

    deinit { try? FileManager.default.removeItem(atPath: parent) }

    private func path(_ name: String) -> String { directory.path + "/" + name }

    private func failure(_ body: () throws -> Void) -> PrivateDirectory.Failure? {
        do { try body() } catch { return error as? PrivateDirectory.Failure }
        return nil
    }

    @Test func `a version stays the same until the file is replaced or removed`() throws {
        #expect(directory.versions(of: "x")() == nil)
        try directory.write([1], to: "x")
        let versions = directory.versions(of: "x")
        let first = try #require(versions())
        #expect(versions() == first)
        try directory.write([1], to: "x")
        #expect(versions() == nil)
        let second = directory.versions(of: "x")
        #expect(second() != nil && second() != first)
        try directory.remove("x")
        #expect(second() == nil)
    }

    @Test func `a version changes with the file's mode and contents`() throws {
        try directory.write([1], to: "x")
        let versions = directory.versions(of: "x")
        let first = try #require(versions())
        #expect(chmod(path("x"), 0o640) == 0)
        #expect(versions() == nil)
        #expect(chmod(path("x"), 0o600) == 0)
        let file = try #require(FileHandle(forWritingAtPath: path("x")))
        try file.write(contentsOf: [1, 2])
        try file.close()
        #expect(versions() != nil && versions() != first)
    }

    @Test func `a file that others can read, a link and a directory have no version and are not read`() throws {
        try directory.write([1], to: "x")
        #expect(chmod(path("x"), 0o640) == 0)
        #expect(directory.versions(of: "x")() == nil)
        #expect(failure { _ = try directory.read("x") }?.number == EPERM)
        #expect(chmod(path("x"), 0o600) == 0)
        #expect(symlink(path("x"), path("link")) == 0)
        #expect(directory.versions(of: "link")() == nil)
        #expect(failure { _ = try directory.read("link") }?.number == ELOOP)
        #expect(mkdir(path("folder"), 0o700) == 0)
        #expect(directory.versions(of: "folder")() == nil)
        #expect(failure { _ = try directory.read("folder") }?.call == "not a file")
    }

    @Test func `at most 256 KiB of a file are read`() throws {
        for size in [262_144, 262_145, 1 << 24] {
            try directory.write([UInt8](repeating: 7, count: size), to: "x")
            #expect(try directory.read("x")?.count == 262_144)
        }
    }

    @Test func `an absent file and an absent directory are read as nothing and removed without an error`() throws {
        #expect(try directory.read("x") == nil)
        try directory.remove("x")
        try directory.write([1], to: "y")
        #expect(try directory.read("x") == nil)
        try directory.remove("x")
        #expect(try directory.read("y") == [1])
    }

    @Test func `what an interrupted write left is removed, and what a running one writes is kept`() throws {
        try directory.write([1], to: "x")
        let names = [".x.1.1.tmp", ".x.1.2.tmp", ".y.1.1.tmp", "x.1.1.tmp", ".x.1.1.tmp~"]
        for name in names { #expect(FileManager.default.createFile(atPath: path(name), contents: nil)) }
        let running = open(path(names[1]), O_RDONLY)
        defer { close(running) }
        #expect(flock(running, LOCK_EX | LOCK_NB) == 0)
        try directory.remove("x")
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(Set(left) == Set(names.dropFirst()))
    }

    @Test func `a directory below a file cannot be made, and says so`() throws {
        try directory.write([1], to: "x")
        let below = PrivateDirectory(path: path("x") + "/c/d")
        #expect(failure { try below.write([1], to: "x") }?.number == ENOTDIR)
        #expect(failure { _ = try below.lock("x") }?.call == "mkdir")
    }

    @Test func `a directory that others can enter is refused, and not changed`() throws {
        try directory.write([1], to: "x")
        #expect(chmod(directory.path, 0o750) == 0)
        #expect(failure { try directory.write([2], to: "x") } != nil)
        var information = stat()
        #expect(stat(directory.path, &information) == 0 && information.st_mode & 0o777 == 0o750)
        #expect(try directory.read("x") == [1])
    }

    @Test func `a name that a directory holds can be neither written nor removed, and leaves no temporary file`() throws
    {
        try directory.write([1], to: "x")
        #expect(mkdir(path("full"), 0o700) == 0 && mkdir(path("full/inside"), 0o700) == 0)
        #expect(failure { try directory.write([1], to: "full") }?.call == "rename")
        #expect(failure { try directory.remove("full") }?.call == "unlink")
        #expect(try Set(FileManager.default.contentsOfDirectory(atPath: directory.path)) == ["x", "full"])
    }

    @Test func `a name that is too long for a file is refused when it is opened`() throws {
        let name = String(repeating: "x", count: 250)
        let refusal = failure { try directory.write([1], to: name) }
        #expect(refusal?.call == "open" && refusal?.number == ENAMETOOLONG)
        #expect(failure { _ = try directory.read(String(repeating: "x", count: 256)) }?.number == ENAMETOOLONG)
    }

    @Test func `nothing depends on the number of an earlier failure`() throws {
        try FileManager.default.createDirectory(atPath: parent + "/a", withIntermediateDirectories: true)
        for number in [EWOULDBLOCK, EINTR, ENOENT, 0] {
            // The directory does not exist yet. Otherwise, making it would fail and change `errno`.
            let fresh = PrivateDirectory(path: parent + "/a/\(number)")
            errno = number
            try fresh.write([1, 2], to: "x")
            errno = number
            #expect(try fresh.read("x") == [1, 2])
            errno = number
            try fresh.remove("x")
            #expect(try FileManager.default.contentsOfDirectory(atPath: fresh.path).isEmpty)
        }
    }

    @Test func `an empty file and one of many pieces are read as they were written`() throws {
        for count in [0, 1, 4096, 262_144] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try directory.write(bytes, to: "x")
            #expect(try directory.read("x") == bytes)
        }
    }

    @Test func `a directory is made with its parents, for its owner alone`() throws {
        try directory.write([1], to: "x")
        for path in [directory.path, parent + "/a"] {
            var information = stat()
            #expect(stat(path, &information) == 0 && information.st_mode & 0o777 == 0o700)
        }
    }

    @Test func `a link or a file in place of the directory is refused`() throws {
        try directory.write([1], to: "x")
        #expect(symlink(directory.path, parent + "/link") == 0)
        #expect(failure { try PrivateDirectory(path: parent + "/link").write([1], to: "y") }?.number == ENOTDIR)
        #expect(failure { try PrivateDirectory(path: path("x")).write([1], to: "y") }?.number == ENOTDIR)
        #expect(failure { try PrivateDirectory(path: "").write([1], to: "y") }?.number == ENOENT)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["x"])
    }

    @Test func `a lock file that cannot be opened is refused, and says so`() throws {
        try directory.write([1], to: "x")
        #expect(mkdir(path("folder"), 0o700) == 0 && symlink(path("x"), path("link")) == 0)
        for (name, number) in [("folder", EISDIR), ("link", ELOOP)] {
            let refusal = failure { _ = try directory.lock(name) }
            #expect(refusal?.call == "open" && refusal?.number == number)
        }
    }

    @Test func `a new file is ours only if it is locked and still has its name`() throws {
        try directory.write([1], to: "x")
        let (one, other) = (open(path("x"), O_RDONLY), open(path("x"), O_RDONLY))
        defer {
            close(one)
            close(other)
        }
        #expect(directory.isOurs(one))
        #expect(directory.isOurs(one))
        // First, `other` is not ours because `one` holds the lock. Then it is not ours because the file was removed, as another
        // process could do.
        #expect(!directory.isOurs(other))
        flock(one, LOCK_UN)
        #expect(unlink(path("x")) == 0)
        #expect(!directory.isOurs(other))
        #expect(!directory.isOurs(-1))
    }
}
