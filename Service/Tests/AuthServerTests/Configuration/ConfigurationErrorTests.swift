import AuthContract
import Foundation
import Testing

@testable import AuthServer

/// Errors name the key and the line of a fault in the configuration. No error shows the value, because it may be a secret.
@Suite struct `Configuration errors show no values` {
    private static let secret = "c2VjcmV0IHRoYXQgaXMgbmV2ZXIgc2hvd24gdG8gYW55"

    private func error(
        _ text: String, in path: String = "c.yaml", environment: [String: String] = [:],
        flags: [ConfigurationKey: [String]] = [:]
    ) throws -> ConfigurationError {
        let thrown = #expect(throws: ConfigurationError.self, "\(text)") {
            let file = try ConfigurationFile(path: path, contents: Array(text.utf8))
            _ = try ServiceConfiguration(file: file, environment: environment, flags: flags)
        }
        return try #require(thrown)
    }

    @Test(arguments: [
        ("database: a\nservice_key: SECRET\ndatabase: b\n", "database", "lines 1 and 3"),
        ("server:\n  port: 1\n  host: SECRET\n  port: 2\n", "server.port", "lines 2 and 4"),
        ("server: {port: 1, \"port\": 2}\nservice_key: SECRET", "server.port", "line"),
        ("providers:\n  apple_key: |\n    SECRET\n  'apple_key': SECRET\n", "providers.apple_key", "lines 2 and 4"),
        ("a: SECRET\na: SECRET\nb: 1\nb: 2\n", "a", "lines 1 and 2"),
        ("server: {port: 1}\nserver.port: 2\nservice_key: SECRET", "server.port", "line"),
        ("service_key: SECRET\nservice_key: null\n", "service_key", "lines 1 and 2"),
    ]) func `an error names a repeated key by its path and lines`(text: String, key: String, place: String) throws {
        let error = try error(text.replacingOccurrences(of: "SECRET", with: Self.secret))
        #expect(error.key == key)
        #expect(error.reason.contains("appears twice"), "\(error)")
        #expect(error.reason.contains(place), "\(error)")
        #expect(!error.description.contains(Self.secret), "\(error)")
    }

    @Test(arguments: [
        (#"{"database": "a", "service_key": "SECRET",\#n "database": "b"}"#, "database", "lines 1 and 2"),
        (#"{"server": {"port": 1,\#n"host": "SECRET", "port": 2}}"#, "server.port", "lines 1 and 2"),
        (#"{"server": {"port": 1}, "server.port": 2, "service_key": "SECRET"}"#, "server.port", "line 1"),
        (#"{"service_key": "SECRET" oops}"#, "config", "line 1"),
        ("{\n\n\"service_key\": SECRET}", "config", "line 3"),
        (#"{"service_key": [["SECRET"]]}"#, "service_key", "line 1"), (#"["SECRET"]"#, "config", ""),
        (#"{"SECRET": 1}"#, "(a name that is not shown)", "line 1"), (#"{"": {"database": "SECRET"}}"#, "config", ""),
    ]) func `an error names a repeated JSON key by its path and lines`(text: String, key: String, place: String) throws
    {
        let error = try error(text.replacingOccurrences(of: "SECRET", with: Self.secret), in: "c.json")
        #expect(error.key == key)
        #expect(place.isEmpty || error.reason.contains(place), "\(error)")
        #expect(!error.description.contains(Self.secret), "\(error)")
    }

    @Test(arguments: [
        ("service_key: \"SECRET\\q\"", "line 1"), ("server:\n  port: 1\n service_key: SECRET", "line 3"),
        ("service_key:SECRET\ndatabase: x", "line"), ("{service_key:SECRET, database: x}", "line 1"),
        ("service_key: [SECRET\n", "line"), ("SECRET", ""), ("- SECRET", ""), ("SECRET: 1", "line 1"),
        ("? [SECRET]\n: 1", "line 1"), ("? SECRET\n: 1", "line 1"), ("service_key: &a SECRET\ndatabase: *a", "line 1"),
        ("service_key: {SECRET: 1}", "line 1"), ("providers: SECRET", "line 1"), ("server: {port: SECRET}", "line 1"),
        ("service_key: SECRET\n--- \ndatabase: b", "line"), ("service_key: SECRET\u{1}", ""),
        ("database: x\n\nlimits:\n  header_bytes: SECRET", "line 4"), ("service_key: *SECRET", "line 1"),
        ("'': {database: SECRET}", "line 1"), ("service_key: !!SECRET x", ""), ("%SECRET x\n---\n", ""),
    ]) func `an error names the line of text that is not a configuration`(text: String, place: String) throws {
        let error = try error(text.replacingOccurrences(of: "SECRET", with: Self.secret))
        #expect(place.isEmpty || error.reason.contains(place), "\(error)")
        #expect(!error.description.contains(Self.secret), "\(error)")
    }

    @Test func `a file that is not UTF-8 is refused`() {
        #expect(throws: ConfigurationError.self) {
            try ConfigurationFile(path: "c.yaml", contents: Array("database: ".utf8) + [0xFF])
        }
    }

    @Test(arguments: ConfigurationKey.allCases) func `a secret under an unknown key is not shown`(
        key: ConfigurationKey
    ) throws {
        let secret = Self.secret
        var errors: [ConfigurationError] = []
        func note(_ work: () throws(ConfigurationError) -> Void) {
            do throws(ConfigurationError) { try work() } catch { errors.append(error) }
        }
        for yaml in ["\(key.rawValue): \(secret)", "\(key.rawValue): [\(secret)]", "\(key.rawValue): {x: \(secret)}"] {
            note { () throws(ConfigurationError) in
                let file = try ConfigurationFile(path: "c.yaml", contents: Array(yaml.utf8))
                _ = try ServiceConfiguration(file: file)
            }
        }
        note { () throws(ConfigurationError) in
            _ = try ServiceConfiguration(environment: [key.variable: secret])
        }
        if key.kind == .secret {
            note { () throws(ConfigurationError) in
                _ = try ServiceConfiguration(environment: [key.variable + "_FILE": secret])
            }
            note { () throws(ConfigurationError) in
                let yaml = "\(key.rawValue)_file: \(secret)"
                let file = try ConfigurationFile(path: "c.yaml", contents: Array(yaml.utf8))
                _ = try ServiceConfiguration(file: file)
            }
        }
        #expect(!errors.isEmpty)
        for error in errors where !(key == .tlsCertificate || key == .tlsKey) {
            #expect(!error.description.contains(secret), "\(error)")
        }
    }

    @Test func `copies of copies are refused before they grow`() throws {
        let lines = (1...9).map {
            "a\($0): &a\($0) [\(Array(repeating: "*a\($0 - 1)", count: 10).joined(separator: ", "))]"
        }
        let error = try error("a0: &a0 [x, x]\n" + lines.joined(separator: "\n"))
        #expect(error.reason.contains("aliases"))
    }
}

/// Configuration files that are not regular files.
@Suite struct `Configuration from pipes` {
    private func pipe(_ text: String) throws -> Pipe {
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try pipe.fileHandleForWriting.close()
        return pipe
    }

    @Test(arguments: ["database: x", #"{"database": "x"}"#])
    func `a pipe is read, in the language of its first character`(text: String) throws {
        let pipe = try pipe(text)
        let file = try ConfigurationFile(path: "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)")
        #expect(try ServiceConfiguration(file: file).text(.database) == "x")
    }

    @Test func `a secret's file may be a pipe, but not empty`() throws {
        let key = Data(repeating: 3, count: 32).base64EncodedString()
        let (full, empty) = (try pipe(key + "\n"), try pipe("\n"))
        func configuration(_ pipe: Pipe) throws -> ServiceConfiguration {
            let path = "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)"
            return try ServiceConfiguration(environment: ["SYNHEART_AUTH_SERVICE_KEY_FILE": path])
        }
        #expect(try configuration(full).secret(.serviceKey) == key)
        #expect(throws: ConfigurationError.self) { try configuration(empty) }
    }

    @Test func `an endless file is bounded`() {
        let error = #expect(throws: ConfigurationError.self) {
            try ServiceConfiguration(environment: ["SYNHEART_AUTH_SERVICE_KEY_FILE": "/dev/zero"])
        }
        #expect(error?.reason.contains("larger than 64 KiB") == true)
    }
}
