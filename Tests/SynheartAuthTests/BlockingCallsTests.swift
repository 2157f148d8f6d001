import AuthContract
import Bytes
import Foundation
import Testing

@testable import SynheartAuth

/// Blocking calls, some of which hang.
@Suite(.timeLimit(.minutes(15))) struct BlockingCallsTests {
    private let calls = BlockingCalls()
    private let sleeper = TestSleeper(TestClock())
    private var limit: CallLimit { .provider(sleeper) }

    private func run(_ kind: BlockingCall, _ body: @escaping @Sendable () -> Int) async -> Int? {
        guard case .returned(let value) = await calls.run(kind, limit: limit, body) else { return nil }
        return value
    }

    /// Makes a call of this kind that hangs at the gate. Its caller gives up, and the call still hangs.
    private func leaveBehind(_ kind: BlockingCall, _ gate: Gate) async throws {
        gate.shut()
        let before = gate.count
        let hanging = Task {
            await run(kind) {
                gate.pass()
                return 0
            }
        }
        try await eventually { gate.count == before + 1 }
        sleeper.expire()
        #expect(await hanging.value == nil)
    }

    @Test("calls are made one at a time")
    func oneAtATime() async {
        let inside = Locked((now: 0, most: 0))
        await withTaskGroup(of: Void.self) { group in
            for kind in [BlockingCall.sign, .loadKey, .createKey, .sign] {
                group.addTask {
                    _ = await run(kind) {
                        inside.withLock {
                            $0.now += 1
                            $0.most = max($0.most, $0.now)
                        }
                        usleep(1000)
                        return inside.withLock {
                            $0.now -= 1
                            return 0
                        }
                    }
                }
            }
        }
        #expect(inside.withLock { $0.most } == 1)
    }

    @Test("a caller that has its result finds no change pending")
    func endsBeforeItsResult() async {
        for round in 0..<5_000 {
            #expect(await run(.writeRecord) { round } == round)
            let isNow = Locked(false)
            calls.afterPendingChanges { isNow.withLock { $0 = true } }
            #expect(isNow.withLock { $0 }, "the app would be suspended with its lock")
        }
    }

    @Test("while a call hangs, its kind fails at once and others go on")
    func leftBehind() async throws {
        let gate = Gate()
        try await leaveBehind(.loadKey, gate)
        let made = Locked(0)
        for _ in 0..<10 {
            #expect(
                await run(.loadKey) {
                    made.withLock { $0 += 1 }; return 1
                } == nil)
        }
        #expect(made.withLock { $0 } == 0)
        #expect(await run(.sign) { 2 } == 2)
        gate.open()
        try await eventually { await run(.loadKey) { 3 } == 3 }
    }

    @Test("every kind of call may hang, at the cost of one thread each")
    func everyKind() async throws {
        let kinds: [BlockingCall] = [.createKey, .loadKey, .sign]
        let gates = kinds.map { _ in Gate() }
        for (kind, gate) in zip(kinds, gates) { try await leaveBehind(kind, gate) }
        for kind in kinds { #expect(await run(kind) { 1 } == nil) }
        #expect(await run(.deleteKey) { 1 } == 1)
        for gate in gates { gate.open() }
        for kind in kinds { try await eventually { await run(kind) { 1 } == 1 } }
    }

    @Test("queued calls of a kind that hangs fail and are never made")
    func inLine() async throws {
        let gate = Gate()
        gate.shut()
        let call: @Sendable () -> Int = {
            gate.pass()
            return 0
        }
        let first = Task { await run(.sign, call) }
        try await eventually { gate.count == 1 }
        let others = (0..<5).map { _ in Task { await run(.sign, call) } }
        let different = Task { await run(.loadKey) { 7 } }
        // The queue cannot be inspected, so give the tasks time to enter it.
        for _ in 0..<100 { await Task.yield() }
        sleeper.expire()
        #expect(await first.value == nil)
        for other in others { #expect(await other.value == nil) }
        #expect(await different.value == 7)
        #expect(gate.count == 1)
        gate.open()
    }

    @Test("a queued caller that is cancelled returns at once, and its call is never made")
    func cancelledInLine() async throws {
        let gate = Gate()
        gate.shut()
        let first = Task {
            await run(.sign) {
                gate.pass()
                return 1
            }
        }
        try await eventually { gate.count == 1 }
        let made = Locked(false)
        let second = Task {
            await calls.run(.loadKey, limit: limit) { made.withLock { $0 = true } }
        }
        second.cancel()
        guard case .cancelled = await second.value else {
            Issue.record("waited on")
            return
        }
        gate.open()
        #expect(await first.value == 1)
        #expect(await run(.loadKey) { 2 } == 2)
        #expect(!made.withLock { $0 })
    }

    @Test("a running call without a limit is abandoned when its caller is cancelled")
    func cancelledWhileRunning() async throws {
        let gate = Gate()
        gate.shut()
        let call = Task { [calls] in
            await calls.run(.attest, limit: nil, leavesBehind: true) { gate.pass() }
        }
        try await eventually { gate.count == 1 }
        call.cancel()
        guard case .noAnswer = await call.value else {
            Issue.record("waited on")
            return
        }
        #expect(await run(.attest) { 1 } == nil)
        gate.open()
        try await eventually { await run(.attest) { 1 } == 1 }
    }

    @Test("an action after changes runs at once, or when the abandoned change returns")
    func afterChanges() async throws {
        let (reading, writing) = (Gate(), Gate())
        let ran = Locked(0)
        try await leaveBehind(.readRecord, reading)
        calls.afterChanges { ran.withLock { $0 += 1 } }
        #expect(ran.withLock { $0 } == 1 && !calls.hasChangeLeftBehind)
        try await leaveBehind(.writeRecord, writing)
        calls.afterChanges { ran.withLock { $0 += 1 } }
        #expect(ran.withLock { $0 } == 1 && calls.hasChangeLeftBehind)
        reading.open()
        try await eventually { await run(.readRecord) { 1 } == 1 }
        #expect(ran.withLock { $0 } == 1)
        writing.open()
        try await eventually { ran.withLock { $0 } == 2 }
        #expect(!calls.hasChangeLeftBehind)
    }

    @Test("a late value is handed over once")
    func unclaimed() async throws {
        let gate = Gate()
        gate.shut()
        let late = Locked<[Int]>([])
        let call = Task {
            await calls.run(.lockRecord, limit: limit, unclaimed: { value in late.withLock { $0.append(value) } }) {
                gate.pass()
                return 5
            }
        }
        try await eventually { gate.count == 1 }
        sleeper.expire()
        _ = await call.value
        gate.open()
        try await eventually { late.withLock { $0 } == [5] }
        #expect(await run(.lockRecord) { 6 } == 6)
        #expect(late.withLock { $0 } == [5])
    }

    private func ending(_ kind: BlockingCall, _ gate: Gate? = nil) async -> String {
        switch await calls.run(kind, limit: limit, { gate?.pass() }) {
        case .returned: "returned"
        case .noAnswer: "no answer"
        case .cancelled: "cancelled"
        }
    }

    @Test func `a call that hangs, those behind it and later ones of its kind get no answer`() async throws {
        let gate = Gate()
        gate.shut()
        let first = Task { await ending(.sign, gate) }
        try await eventually { gate.count == 1 }
        let second = Task { await ending(.sign, gate) }
        for _ in 0..<100 { await Task.yield() }
        sleeper.expire()
        #expect(await first.value == "no answer")
        #expect(await second.value == "no answer")
        #expect(await ending(.sign, gate) == "no answer")
        #expect(await ending(.loadKey) == "returned")
        gate.open()
    }

    @Test func `cancelling a caller does not abandon its running call, unless it says so`() async throws {
        let gate = Gate()
        gate.shut()
        let call = Task { await ending(.sign, gate) }
        try await eventually { gate.count == 1 }
        call.cancel()
        let next = Task { await ending(.sign) }
        for _ in 0..<100 { await Task.yield() }
        gate.open()
        #expect(await call.value == "returned")
        #expect(await next.value == "returned")
    }

    @Test(
        arguments: [
            (.createKey, true), (.deleteKey, true), (.writeRecord, true), (.removeRecord, true), (.loadKey, false),
            (.sign, false), (.readRecord, false), (.setRecordAside, false), (.lockRecord, false), (.attest, false),
        ] as [(BlockingCall, Bool)])
    func `later calls wait for an abandoned change, not for an abandoned read`(
        kind: BlockingCall, isChange: Bool
    )
        async throws
    {
        let gate = Gate()
        try await leaveBehind(kind, gate)
        #expect(calls.hasChangeLeftBehind == isChange)
        let ran = Locked(0)
        calls.afterChanges { ran.withLock { $0 += 1 } }
        #expect(ran.withLock { $0 } == (isChange ? 0 : 1))
        gate.open()
        try await eventually { ran.withLock { $0 } == 1 }
        try await eventually { !calls.hasChangeLeftBehind }
    }
}
