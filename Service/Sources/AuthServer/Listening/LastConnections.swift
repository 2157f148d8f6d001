internal import NIOCore

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

extension Channel {
    /// Stops a listening socket from starting further handshakes, and returns when it has accepted every connection, or
    /// after about a second.
    ///
    /// When a listening socket is closed, Linux resets the connections that wait to be accepted and those in a handshake.
    /// Their clients see open connections and may have sent a request, which a load balancer must not repeat. So new SYN
    /// packets are dropped first. A client whose SYN was dropped sends it again after a second. By then the socket is
    /// closed, so the client is refused before it has sent a request, and the balancer asks another node.
    ///
    /// On systems other than Linux, the function returns at once.
    func acceptLastConnections() async {
        #if os(Linux)
            guard let socket = self as? any SocketOptionProvider, (try? await socket.dropNewHandshakes()) != nil else {
                return
            }
            // Wait for three empty polls in a row. One is not enough: a handshake may be under way, and a connection that was just
            // accepted may not have reached its event loop.
            var polls = 0, emptyPolls = 0
            while emptyPolls < 3, polls < 100, (try? await Task.sleep(for: .milliseconds(10))) != nil {
                polls += 1
                guard let waiting = try? await socket.getTCPInfo().get().tcpi_unacked else { return }
                emptyPolls = waiting == 0 ? emptyPolls + 1 : 0
            }
        #endif
    }
}

#if os(Linux)
    extension SocketOptionProvider {
        /// Drops packets with SYN and without ACK: the start of a handshake. All others pass.
        fileprivate func dropNewHandshakes() async throws {
            // A classic BPF program over the TCP header (linux/filter.h). The flags are byte 13: SYN is 0x02, ACK 0x10.
            let program = [
                BPFInstruction(code: 0x30, k: 13),  // load the byte at 13
                BPFInstruction(code: 0x54, k: 0x12),  // keep SYN and ACK
                BPFInstruction(code: 0x15, ifFalse: 1, k: 0x02),  // unless only SYN is left, skip one
                BPFInstruction(code: 0x06, k: 0),  // drop
                BPFInstruction(code: 0x06, k: .max),  // pass
            ]
            try await eventLoop.flatSubmit {
                // On the event loop the option is set immediately, so the kernel copies the program while the pointer is valid.
                program.withUnsafeBufferPointer {
                    self.unsafeSetSocketOption(
                        level: .socket, name: NIOBSDSocket.Option(rawValue: 26),  // SO_ATTACH_FILTER
                        value: BPFProgram(count: UInt16($0.count), instructions: $0.baseAddress))
                }
            }.get()
        }
    }

    /// `struct sock_filter`.
    private struct BPFInstruction {
        var code: UInt16
        var ifTrue: UInt8 = 0
        var ifFalse: UInt8 = 0
        var k: UInt32
    }

    /// `struct sock_fprog`. A socket option must be Sendable; this one is created, used and released within one call on the event
    /// loop.
    private struct BPFProgram: @unchecked Sendable {
        var count: UInt16
        var instructions: UnsafePointer<BPFInstruction>?
    }
#endif
