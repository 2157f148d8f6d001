#if canImport(Glibc)
    internal import Glibc
    package import Logging
    internal import NIOCore
    internal import NIOPosix

    /// The service manager that started the process, such as systemd with `Type=notify`. The service tells the manager when
    /// the service is ready, when it stops, and that it still works.
    ///
    /// This is the protocol of sd_notify(3) without its library: one datagram for each state.
    package struct ServiceManager: Sendable {
        /// A state that the service reports to its manager.
        package enum State: String, Sendable {
            /// The listeners accept connections.
            case ready = "READY=1"
            /// The service has begun to stop, and finishes its requests.
            case stopping = "STOPPING=1"
            /// The event loops answer.
            case alive = "WATCHDOG=1"
        }

        /// The socket of the manager; nil if there is no manager, or if `NOTIFY_SOCKET` is not valid.
        private let address: SocketAddress?
        /// The pause between two `alive` messages; nil if the manager expects none.
        let interval: Duration?
        private let logger: Logger

        /// - Parameters:
        ///   - environment: the process's variables: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`.
        ///   - process: the id of this process.
        ///   - logger: gets a warning if a message cannot be sent to the manager.
        package init(environment: [String: String], process: Int32 = getpid(), logger: Logger) {
            self.logger = logger
            let name = environment["NOTIFY_SOCKET"]
            address = name.flatMap(SocketAddress.init)
            if let name, !name.isEmpty, address == nil {
                logger.warning(
                    "the service manager is told nothing: NOTIFY_SOCKET must be an absolute path, or @ and a name",
                    metadata: ["longest": "\(SocketAddress.longestName)"])
            }
            // The watchdog variables may be meant for another process, such as a parent that passed them on.
            let isMeant = environment["WATCHDOG_PID"].map { Int32($0) == process } ?? true
            let limit = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
            // Send at half of the limit, as sd_watchdog_enabled(3) recommends.
            interval = address != nil && isMeant && limit > 1 ? .microseconds(limit / 2) : nil
        }

        /// Sends a state to the manager. If that fails, the service continues: a manager that gets no message acts by its own timeout.
        package func tell(_ state: State) {
            guard let address else { return }
            let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { if socket >= 0 { close(socket) } }
            // Set a timeout, so that a manager that does not read cannot block the service.
            var timeout = timeval(tv_sec: 2, tv_usec: 0)
            guard socket >= 0,
                setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size)) == 0,
                address.send(Array(state.rawValue.utf8), from: socket)
            else {
                logger.warning(
                    "the service manager was not told",
                    metadata: ["state": "\(state.rawValue)", "reason": "\(String(cString: strerror(errno)))"])
                return
            }
        }

        /// Tells the manager at each interval that the service works, until the task is cancelled. Does nothing if the manager
        /// expects no such messages.
        ///
        /// - Parameters:
        ///   - answers: returns once the service has shown that it works. Until it returns, the manager gets no message.
        ///   - sleep: waits.
        package func watch(
            answers: @Sendable () async throws -> Void = Self.everyEventLoopAnswers,
            sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
        ) async {
            guard let interval else { return }
            repeat {
                if (try? await answers()) != nil { tell(.alive) }
            } while (try? await sleep(interval)) != nil
        }

        /// Returns once every event loop of the listeners has run a task.
        @Sendable package static func everyEventLoopAnswers() async throws {
            for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { try await loop.submit {}.get() }
        }
    }

    /// The address of a datagram socket on this machine (unix(7)).
    private struct SocketAddress: Sendable {
        private let address: sockaddr_un
        private let length: socklen_t

        /// - Parameter name: an absolute path, or `@` and the name of an abstract socket.
        init?(_ name: String) {
            var bytes = Array(name.utf8)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            guard bytes.count > 1, bytes.count <= Self.longestName, !bytes.contains(0) else { return nil }
            switch bytes[0] {
            case UInt8(ascii: "/"): bytes.append(0)
            case UInt8(ascii: "@"): bytes[0] = 0
            default: return nil
            }
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
            self.address = address
            length = socklen_t(MemoryLayout<sockaddr_un>.size - Self.longestName - 1 + bytes.count)
        }

        /// The length of the longest name, in bytes. A path needs one more byte: the zero byte at its end.
        static let longestName = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

        /// Sends a datagram. Returns false if that failed; `errno` has the reason.
        func send(_ message: [UInt8], from socket: Int32) -> Bool {
            withUnsafePointer(to: address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(socket, message, message.count, Int32(MSG_NOSIGNAL), $0, length) == message.count
                }
            }
        }
    }
#endif
