import Bytes
import Testing

@Suite struct PathPartsTests {
    @Test(
        "a path consists of its folder and its name",
        arguments: [
            ("d", ".", "d"), ("é", ".", "é"), ("d.sqlite", ".", "d.sqlite"), ("./d", ".", "d"), ("../d", "..", "d"),
            ("a/b", "a", "b"), ("a/b/c", "a/b", "c"), ("é/ü", "é", "ü"), ("/d", "/", "d"), ("/a/b", "/a", "b"),
            (".", ".", "."), ("..", ".", ".."), ("~", ".", "~"), ("a/.", "a", "."),
        ])
    func parts(_ path: String, _ folder: String, _ name: String) {
        #expect(PathParts(path).folder == folder)
        #expect(PathParts(path).name == name)
    }

    @Test(
        "slashes at the end and doubled slashes have no effect",
        arguments: [
            ("d/", ".", "d"), ("a/b/", "a", "b"), ("a//b", "a", "b"), ("a/b//", "a", "b"), ("//d", "/", "d"),
            ("//a//b", "//a", "b"),
        ])
    func slashes(_ path: String, _ folder: String, _ name: String) {
        #expect(PathParts(path).folder == folder)
        #expect(PathParts(path).name == name)
    }

    @Test(arguments: [("", "."), ("/", "/"), ("//", "/")])
    func `the root and an empty path have no name`(_ path: String, _ folder: String) {
        #expect(PathParts(path).folder == folder)
        #expect(PathParts(path).name == "")
    }

    @Test func `a slash with a combining mark after it separates, as for the system`() {
        #expect(PathParts("a/\u{301}b").folder == "a")
    }
}
