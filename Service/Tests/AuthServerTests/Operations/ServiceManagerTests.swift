#if canImport(Glibc)
    import Bytes
    import Foundation
    import Glibc
    import ServiceTestHelpers
    import Testing

    @testable import AuthServer

    /// The service tells its manager over a socket that it is ready, that it is stopping, and that it still works.
    @Suite struct ServiceManagerTests {
        private let lines = LogLines()

        private func manager(_ environment: [String: String], process: Int32 = 17) -> ServiceManager {
            ServiceManager(environment: environment, process: process, logger: lines.logger)
        }

        @Test(arguments: [false, true]) func `each state is one datagram to the socket`(isAbstract: Bool) throws {
            let socket = try NotifySocket(isAbstract: isAbstract)
            let manager = manager(["NOTIFY_SOCKET": socket.name])
            manager.tell(.ready)
            manager.tell(.alive)
            manager.tell(.stopping)
            #expect(socket.received() == ["READY=1", "WATCHDOG=1", "STOPPING=1"])
            #expect(lines.all.isEmpty)
        }

        @Test func `without a manager nothing is told and nothing is logged`() {
            manager([:]).tell(.ready)
            manager(["NOTIFY_SOCKET": ""]).tell(.ready)
            #expect(lines.all.isEmpty)
        }

        @Test(arguments: [
            "relative/socket", "/", "@", "vsock:2:1234", "/" + String(repeating: "a", count: 107), "/a\0b",
        ])
        func `a name that is no socket here is logged and not used`(name: String) {
            let manager = manager(["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000"])
            #expect(manager.interval == nil)
            manager.tell(.ready)
            #expect(lines.all.count == 1 && lines.all[0].message.contains("NOTIFY_SOCKET"))
        }

        @Test func `a manager that is gone is logged, and the service goes on`() throws {
            let name = try NotifySocket(isAbstract: false).name
            manager(["NOTIFY_SOCKET": name]).tell(.ready)
            #expect(lines.all.map { $0.metadata["state"] } == ["READY=1"])
        }

        @Test(
            arguments: [
                ("30000000", nil, Duration.seconds(15)), ("30000000", "17", .seconds(15)), ("30000000", "18", nil),
                ("30000000", "x", nil), ("2", nil, .microseconds(1)), ("1", nil, nil), ("0", nil, nil),
                ("-2", nil, nil),
                ("soon", nil, nil), ("99999999999999999999", nil, nil), (nil, "17", nil),
            ] as [(String?, String?, Duration?)])
        func `the pause is half of the manager's limit for this process`(
            limit: String?, process: String?, pause: Duration?
        ) {
            var environment = ["NOTIFY_SOCKET": "@nowhere"]
            environment["WATCHDOG_USEC"] = limit
            environment["WATCHDOG_PID"] = process
            #expect(manager(environment).interval == pause)
        }

        @Test func `the manager is told at each pause while the service answers`() async throws {
            let socket = try NotifySocket(isAbstract: false)
            let manager = manager(["NOTIFY_SOCKET": socket.name, "WATCHDOG_USEC": "20000000"])
            let pauses = Locked<[Duration]>([])
            await manager.watch {
                try await ServiceManager.everyEventLoopAnswers()
                if pauses.withLock({ $0.count }) == 1 { throw CancellationError() }
            } sleep: { pause in
                if pauses.withLock({ pauses in
                    pauses.append(pause)
                    return pauses.count == 3
                }) {
                    throw CancellationError()
                }
            }
            #expect(pauses.withLock { $0 } == [.seconds(10), .seconds(10), .seconds(10)])
            // The service did not answer the second of three checks, so there are only two datagrams.
            #expect(socket.received() == ["WATCHDOG=1", "WATCHDOG=1"])
        }

        @Test func `a manager that expects no sign of life gets none`() async throws {
            let socket = try NotifySocket(isAbstract: false)
            await manager(["NOTIFY_SOCKET": socket.name]).watch()
            #expect(socket.received().isEmpty)
        }
    }

    /// A service manager's end of the socket.
    private final class NotifySocket {
        let name: String
        private let socket: Int32

        init(isAbstract: Bool) throws {
            let path = "\(FileManager.default.temporaryDirectory.path)/\(UUID().uuidString)"
            name = isAbstract ? "@\(path)" : path
            var bytes = Array(name.utf8)
            if isAbstract { bytes[0] = 0 }
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let room = MemoryLayout.size(ofValue: address.sun_path)
            try #require(bytes.count < room)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
            let length = socklen_t(MemoryLayout<sockaddr_un>.size - room + bytes.count)
            socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            let bound = withUnsafePointer(to: address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, length) }
            }
            try #require(bound == 0, "\(String(cString: strerror(errno)))")
        }

        deinit {
            close(socket)
            unlink(name)
        }

        /// The datagrams that have arrived.
        func received() -> [String] {
            var (datagrams, buffer) = ([String](), [UInt8](repeating: 0, count: 64))
            while true {
                let count = recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return datagrams }
                datagrams.append(String(decoding: buffer[..<count], as: UTF8.self))
            }
        }
    }
#endif
