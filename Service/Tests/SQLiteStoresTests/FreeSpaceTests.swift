import AuthService
import Bytes
import Foundation
import Testing

@testable import SQLiteStores

struct FreeSpaceTests {
    /// A file system that hangs until it is released. It counts its calls.
    private final class HangingDisk: Sendable {
        private let count = Locked(0)
        private let released = DispatchSemaphore(value: 0)

        var questions: Int { count.withLock { $0 } }

        func ask() -> Int64? {
            count.withLock { $0 += 1 }
            released.wait()
            return 7
        }

        func release() { released.signal() }
    }

    @Test func `a file system that hangs is an error within the deadline and keeps one thread`() async throws {
        let disk = HangingDisk()
        let space = FreeSpace(deadline: .milliseconds(50), ask: disk.ask)
        // There are more calls than the global queue has threads. Calls must not block these threads: the deadlines need them.
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    let error = await #expect(throws: StoreError.self) { try await space.bytes() }
                    #expect(error?.code == .tooSlow)
                }
            }
        }
        #expect(disk.questions == 1)
        disk.release()
    }

    @Test func `all waiting callers get one answer, and the next caller asks again`() async throws {
        let disk = HangingDisk()
        let space = FreeSpace(deadline: .seconds(60), ask: disk.ask)
        async let first = space.bytes()
        async let second = space.bytes()
        disk.release()
        disk.release()
        let answers = try await [first, second]
        #expect(answers == [7, 7])
        disk.release()
        #expect(try await space.bytes() == 7)
    }

    @Test func `the stores report their free bytes`() async throws {
        let folder = try TemporaryFolder()
        let stores = try SQLiteStores.open(folder)
        #expect(try #require(try await stores.freeBytes()) > 0)
        await stores.close()
        withExtendedLifetime(folder) {}
    }
}
