#if canImport(Security) && !os(macOS)
    internal import Bytes
    internal import Dispatch
    internal import Foundation
    internal import Security

    /// The time that `ProcessInfo.performExpiringActivity` gives, in apps and in their extensions
    /// (https://developer.apple.com/documentation/foundation/processinfo/performexpiringactivity(withreason:using:)).
    ///
    /// All holders share one activity, because each activity blocks a thread until it ends.
    final class ExpiringActivity: RunningTime {
        static let shared = ExpiringActivity()

        private struct State: Sendable {
            /// The number of the activity, to recognize callbacks of an earlier one.
            var activity: UInt64 = 0
            var holds: [ObjectIdentifier: Hold] = [:]
            var isGranted = false
            /// Signaled to end the activity's block; nil if there is no activity.
            var end: DispatchSemaphore?
        }

        private let state = Locked(State())

        func begin(_ expire: @escaping @Sendable () -> Void) -> any RunningTimeHold {
            let hold = Hold(self, expire)
            let new = state.withLock { state -> (activity: UInt64, end: DispatchSemaphore)? in
                state.holds[ObjectIdentifier(hold)] = hold
                if state.end != nil { return nil }
                state.activity += 1
                let end = DispatchSemaphore(value: 0)
                state.end = end
                return (state.activity, end)
            }
            if let new {
                ProcessInfo.processInfo.performExpiringActivity(withReason: "Synheart Auth holds a lock") { isExpired in
                    // The activity lasts until this block returns. When the time is over, the system calls the block again with
                    // `true`. If it grants no time, its only call has `true`.
                    if isExpired { self.expire(new.activity) } else if self.grant(new.activity) { new.end.wait() }
                }
            } else if state.withLock({ $0.isGranted }) {
                hold.settle(true)
            }
            return hold
        }

        private func grant(_ activity: UInt64) -> Bool {
            let holds = state.withLock { state -> [Hold]? in
                guard state.activity == activity, state.end != nil else { return nil }
                state.isGranted = true
                return Array(state.holds.values)
            }
            for hold in holds ?? [] { hold.settle(true) }
            return holds != nil
        }

        private func expire(_ activity: UInt64) {
            let ended = state.withLock { state -> (holds: [Hold], end: DispatchSemaphore?)? in
                guard state.activity == activity else { return nil }
                defer { (state.holds, state.isGranted, state.end) = ([:], false, nil) }
                return (Array(state.holds.values), state.end)
            }
            for hold in ended?.holds ?? [] {
                hold.settle(false)
                hold.expire()
            }
            ended?.end?.signal()
        }

        private func end(_ hold: Hold) {
            let end = state.withLock { state -> DispatchSemaphore? in
                guard state.holds.removeValue(forKey: ObjectIdentifier(hold)) != nil, state.holds.isEmpty else {
                    return nil
                }
                defer { (state.isGranted, state.end) = (false, nil) }
                return state.end
            }
            end?.signal()
        }

        private final class Hold: RunningTimeHold {
            private let activity: ExpiringActivity
            let expire: @Sendable () -> Void
            private let granted = OnceValue<Bool>()
            private let known = Locked<Bool?>(nil)

            init(_ activity: ExpiringActivity, _ expire: @escaping @Sendable () -> Void) {
                self.activity = activity
                self.expire = expire
            }

            var isGranted: Bool? { known.withLock { $0 } }

            func settle(_ isGranted: Bool) {
                known.withLock { $0 = $0 ?? isGranted }
                granted.give(isGranted)
            }

            func answer() async -> Bool { await granted.value }

            func end() { activity.end(self) }
        }
    }
#endif
