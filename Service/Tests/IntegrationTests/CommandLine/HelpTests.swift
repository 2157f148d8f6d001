import AuthServer
import Foundation
import Testing

/// The examples in `--help` are valid command lines, and `--help` prints them as written.
@Suite(.serialized) struct `Help` {
    /// The words of each example in a text, from the one after `synheart-auth` to the end of its command.
    private static func examples(_ text: String) -> [[String]] {
        // A backslash continues a line.
        text.replacing(/\\\n */, with: "").split(separator: "\n").flatMap { line -> [[String]] in
            guard line.hasPrefix("  ") || line.contains("| synheart-auth") else { return [] }
            return commands(String(line)).compactMap { words in
                words.first == "synheart-auth" ? Array(words.dropFirst()) : nil
            }
        }
    }

    /// The commands of a line, split as by a shell, without redirections and comments.
    private static func commands(_ line: String) -> [[String]] {
        var (commands, words, word) = ([[String]](), [String](), nil as String?)
        var (quote, skipsNext) = (nil as Character?, false)
        func endWord() {
            if let word, !skipsNext { words.append(word) }
            if word != nil { skipsNext = false }
            word = nil
        }
        func endCommand() {
            endWord()
            commands.append(words)
            words = []
        }
        scan: for character in line.trimmingCharacters(in: .whitespaces) {
            if let open = quote {
                if character == open { quote = nil } else { word = (word ?? "") + String(character) }
                continue
            }
            switch character {
            case "'", "\"":
                quote = character
                word = word ?? ""
            case " ": endWord()
            case "#" where word == nil: break scan
            case "|", "&": endCommand()
            case ">":
                endWord()
                skipsNext = true
            default: word = (word ?? "") + String(character)
            }
        }
        endCommand()
        return commands
    }

    @Test func `the version is the one of the build`() async throws {
        let result = try await Binary.run(["--version"])
        #expect(result.status == 0 && result.output == "\(Build.version)\n", "\(result.errors)")
    }

    @Test func `every command shows an example of itself`() async throws {
        for command in try await CommandTree.read().commands where !command.isGroup {
            let examples = Self.examples(command.discussion)
            #expect(examples.contains { $0.starts(with: command.path) }, "\(command.name): \(examples)")
        }
    }

    @Test func `help prints every example as written, in lines of at most 80 characters`() async throws {
        for command in try await CommandTree.read().commands {
            let help = try await Binary.run(command.path + ["--help"], environment: ["COLUMNS": "80"])
            let printed = Set(help.output.split(separator: "\n"))
            for line in command.discussion.split(separator: "\n") where line.hasPrefix("  ") {
                #expect(line.count <= 80 && printed.contains(line), "\(command.name): \(line)")
            }
        }
    }

    @Test func `every example is a command line that the binary takes`() async throws {
        let folder = try TemporaryFolder()
        var count = 0
        for command in try await CommandTree.read().commands {
            for example in Self.examples(command.discussion) {
                count += 1
                // Without a standard output, a command parses its arguments and does nothing.
                let result = try await Binary.run(example, in: folder.url, output: .closed)
                #expect(result.status == 2, "\(command.name): \(example): \(result.errors)")
                #expect(result.errors.contains("standard output"), "\(example): \(result.errors)")
            }
        }
        #expect(count > 60)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == [])
    }
}
