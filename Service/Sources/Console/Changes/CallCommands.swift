internal import AuthServer
internal import StrictJSON

/// A call of the admin API, in a form that people can repeat: with curl, and with the command line.
struct CallCommands: Sendable, Hashable {
    let curl: String
    /// The `synheart-auth` command; nil: no command makes this call.
    let cli: String?

    /// - Parameters:
    ///   - origin: the origin of the operations listener, such as `https://ops.example.com`.
    ///   - tag: the `If-Match` of the call; nil: none.
    init(_ call: AdminCall, origin: String, ifMatch tag: String? = nil) {
        var lines = ["curl --fail-with-body -X \(call.route.method) \(Shell.quoted(origin + call.target))"]
        lines.append("-H \"Authorization: Bearer $(cat credential)\"")
        if let tag { lines.append("-H \(Shell.quoted("If-Match: \(tag)"))") }
        if let body = call.body {
            lines.append("-H 'Content-Type: application/json'")
            lines.append("-d \(Shell.quoted(VisibleText.ofJSON(JSONValue.object(body).text())))")
        }
        curl = lines.joined(separator: " \\\n    ")
        cli = CommandLineForm.of(call).map { words in
            let target = ["--url", origin, "--credential-file", "credential"]
            return (["synheart-auth"] + words + target + CommandLineForm.last(call)).map(Shell.quoted)
                .joined(separator: " ")
        }
    }

    /// The value for the template partial `commands`.
    var value: PageValue { ["curl": .lines(curl), "cli": cli.map { .lines($0) } ?? .none] }
}

/// Words of a POSIX shell.
enum Shell {
    /// The word, in quotes if it needs them.
    static func quoted(_ word: String) -> String {
        let isPlain =
            !word.isEmpty
            && word.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "-._/:=@,+%".utf8.contains(byte)
                }
            }
        return isPlain ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}
