import Glibc

/// Standard input, output and error, as file descriptors of the process.
enum StandardStreams {
    /// Makes the streams safe to use. Call it before the process opens a file.
    ///
    /// The next file that a process opens gets the lowest free number. If the caller closed standard output, that file could be
    /// the database, and the command's output would be written into it. So each closed stream is replaced by one that always
    /// fails: `/dev/null`, opened in the wrong direction.
    static func prepare() {
        // If the reader is gone, a write fails and the command reports that. SIGPIPE would kill the command.
        signal(SIGPIPE, SIG_IGN)
        for (stream, wrongDirection) in [
            (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY),
        ] where fcntl(stream, F_GETFD) < 0 {
            guard open("/dev/null", wrongDirection) == stream else { _exit(CommandFailure.Kind.impossible.rawValue) }
        }
    }

    /// Whether the stream is open for writing, and its reader is still there.
    static func isWritable(_ stream: Int32) -> Bool {
        let flags = fcntl(stream, F_GETFL)
        guard flags >= 0, flags & O_ACCMODE != O_RDONLY else { return false }
        var state = pollfd(fd: stream, events: Int16(POLLOUT), revents: 0)
        return poll(&state, 1, 0) >= 0 && state.revents & Int16(POLLERR | POLLNVAL) == 0
    }

    /// Writes the whole text. Returns the same as the function for bytes.
    static func write(_ text: String, to stream: Int32) -> Int32? { write(Array(text.utf8), to: stream) }

    /// Writes all bytes.
    ///
    /// - Returns: the system's error number; nil: everything was written.
    static func write(_ bytes: [UInt8], to stream: Int32) -> Int32? {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(stream, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
                continue
            }
            switch count == 0 ? ENOSPC : errno {
            case EINTR: continue
            case EAGAIN:
                // Wait for room. `OutputFile` opens pipes as non-blocking, and another process may have made a shared pipe non-blocking.
                var state = pollfd(fd: stream, events: Int16(POLLOUT), revents: 0)
                _ = poll(&state, 1, -1)
            case let number: return number
            }
        }
        return nil
    }
}

/// A command's output. It detects lost output, and passes no escape sequence to the terminal.
enum StandardOutput {
    /// Writes a text and ends its line.
    static func print(_ text: String) throws(CommandFailure) { try write(text + "\n") }

    /// Writes a text. Control characters other than line breaks are escaped, such as `\u{1b}`.
    static func write(_ text: String) throws(CommandFailure) { try writeAsItIs(text.withoutControls(butLines: true)) }

    /// Writes JSON and ends its line. Control characters are escaped as in JSON.
    static func print(json: String) throws(CommandFailure) { try writeAsItIs(json.withJSONControls + "\n") }

    /// Writes a text made by this program, such as a shell script, and ends its line.
    static func print(script: String) throws(CommandFailure) { try writeAsItIs(script + "\n") }

    /// Throws if the output has no reader. Commands call it before they change anything.
    static func check() throws(CommandFailure) {
        guard StandardStreams.isWritable(STDOUT_FILENO) else { throw lost("it is closed") }
    }

    /// Syncs an output file to the disk. Some errors, such as a full disk or a lost network folder, are reported only then.
    static func synchronize() throws(CommandFailure) {
        guard fsync(STDOUT_FILENO) != 0, ![EINVAL, EROFS, ENOTSUP].contains(errno) else { return }
        throw lost(String(cString: strerror(errno)))
    }

    private static func writeAsItIs(_ text: String) throws(CommandFailure) {
        guard let number = StandardStreams.write(text, to: STDOUT_FILENO) else { return }
        throw lost(number == EBADF ? "it is closed" : String(cString: strerror(number)))
    }

    private static func lost(_ reason: String) -> CommandFailure {
        CommandFailure(.impossible, "cannot write to standard output: \(reason)")
    }
}

/// A command's messages, which are not its output. If standard error is lost, the exit code still shows the result.
enum StandardError {
    /// Writes a text and ends its line. Control characters other than line breaks are escaped.
    static func print(_ text: String) {
        _ = StandardStreams.write(text.withoutControls(butLines: true) + "\n", to: STDERR_FILENO)
    }
}

/// Hides the standard library's function, which ignores lost output and passes escape sequences on.
@available(*, unavailable, message: "use StandardOutput")
func print(_ items: Any..., separator: String = " ", terminator: String = "\n") {}

extension String {
    /// The text with its control and format characters escaped, such as `\u{1b}`.
    var withoutControls: String { withoutControls(butLines: false) }

    fileprivate func withoutControls(butLines keepsLines: Bool) -> String {
        escapingControls { scalar in
            keepsLines && scalar == "\n" ? "\n" : "\\u{\(String(scalar.value, radix: 16))}"
        }
    }

    /// JSON text with the control and format characters of its strings escaped. Outside of strings, the JSON of this program has
    /// no control characters but line breaks.
    fileprivate var withJSONControls: String {
        escapingControls { scalar in
            guard scalar != "\n" else { return "\n" }
            return UTF16.encode(scalar).map { units in
                units.map { unit in
                    let digits = String(unit, radix: 16)
                    return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }.joined()
            } ?? ""
        }
    }

    private func escapingControls(_ escape: (Unicode.Scalar) -> String) -> String {
        guard !utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { return self }
        return unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: text += escape(scalar)
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
}
