import AuthContract
import Testing

@testable import AuthService

/// `ClaimHistory` in a minimal store, compared with a model that has the true time and every claim ever taken.
///
/// Clocks jump and fall back, claims are purged, the machine loses power, and all claims are lost. The store may
/// accept a request only if it still knows every claim that may have been taken for it. It may refuse a request only
/// if an incident (a fault or a wrong clock) was recent, or if the clock's reading at an incident was near the
/// request's date.
struct ClaimHistoryModelTests {
    /// A store that keeps its claims in a dictionary, and asks its history whether to refuse a request.
    private struct Store {
        /// The data that survive a loss of power.
        struct Disk {
            var claims: [Int: Int64] = [:]
            var history = ClaimHistory()
            var reading = Int64.min
        }

        /// The expiry of each known claim.
        private var claims: [Int: Int64] = [:]
        private var history = ClaimHistory()
        private var disk = Disk()
        /// A note that is kept elsewhere, so it survives a loss of the disk. No claim was made when the clock showed a time
        /// after `until`. `loss` has the dates to refuse if all claims are lost.
        private(set) var note = (until: Int64(0), loss: HistoryLoss())

        mutating func synchronize() {
            disk = Disk(claims: claims, history: history, reading: history.latestReading ?? .min)
        }

        private mutating func makeNote(at now: Int64) { note = (now + 60, history.lossWithoutClaims) }

        private mutating func read(_ now: Int64, _ monotonic: Int64) {
            let finding = history.read(now, monotonic: monotonic)
            if case .wrong = finding {
                let latest = ClaimHistory.latestKept(now: now)
                claims = claims.filter { $0.value <= latest }
                disk.reading = .min
            }
            if finding != .steady || now > note.until { makeNote(at: now) }
        }

        mutating func claim(_ number: Int, date: Int64, now: Int64, monotonic: Int64, window: Int64) -> ClaimOutcome {
            read(now, monotonic)
            let expiry = UnixTime(date) + ReplayClaim.life
            if let refusal = history.refusal(
                timestamp: UnixTime(date), expiresAt: expiry, now: UnixTime(now), futureWindow: window)
            {
                return refusal
            }
            guard claims[number] == nil else { return .taken(ReplayClaim(high: 0, low: UInt64(number))) }
            claims[number] = expiry.seconds
            if history.mustBeDurable(timestamp: UnixTime(date), now: UnixTime(now), durable: disk.reading) {
                synchronize()
            }
            return .claimed
        }

        /// Drops every claim that has expired by the latest reading of the clock.
        mutating func purge() {
            guard let latest = history.latestReading else { return }
            let expired = claims.filter { $0.value <= latest }
            guard let last = expired.values.max() else { return }
            for number in expired.keys { claims[number] = nil }
            history.purged(to: UnixTime(last))
        }

        mutating func losePower(now: Int64, monotonic: Int64) {
            (claims, history) = (disk.claims, disk.history)
            history.restart(monotonic: monotonic)
            let last = history.latestReading
            let finding = history.read(now, monotonic: monotonic)
            let wrong: ClockHistory.WrongReadings? = if case .wrong(let wrong) = finding { wrong } else { nil }
            history.lose(around: [last, now].compactMap { $0 }, and: wrong, isWhole: true)
            if wrong != nil { claims = claims.filter { $0.value <= ClaimHistory.latestKept(now: now) } }
            synchronize()
            makeNote(at: now)
        }

        mutating func loseClaims(now: Int64, monotonic: Int64) {
            let last = history.latestReading
            history.recall(now, monotonic: monotonic)
            history.lose(around: [last, now].compactMap { $0 }, isWhole: false)
            (claims, history) = ([:], history.withoutClaims(now: now))
            synchronize()
            makeNote(at: now)
        }

        /// Loses the disk, and starts over.
        ///
        /// - Parameter kept: an earlier `copy` that remains; nil: only the note remains.
        mutating func loseDisk(_ kept: Disk?, now: Int64, monotonic: Int64, isRestored: Bool = false) {
            var known = kept?.history ?? ClaimHistory()
            known.add(note.loss)
            let readings = [note.until] + (kept.map { [$0.reading] } ?? [])
            claims = [:]
            history = known.startingOver(
                after: readings, now: now, monotonic: monotonic, isRestored: isRestored)
            synchronize()
            makeNote(at: now)
        }

        /// Loses the disk, and continues with the note of a backup.
        mutating func restore(_ backup: (until: Int64, loss: HistoryLoss), now: Int64, monotonic: Int64) {
            note = backup
            loseDisk(nil, now: now, monotonic: monotonic, isRestored: true)
        }

        /// A copy of the current history without the claims, for a later `loseDisk`.
        var copy: Disk { Disk(claims: [:], history: history, reading: history.latestReading ?? .min) }
    }

    private struct Model {
        var store = Store()
        var numbers: SeededNumbers
        var trueTime: Int64 = 1_750_000_000
        var monotonic: Int64 = 1000
        var error: Int64 = 0
        var errorEnds: Int64 = 0
        let window: Int64
        /// The dates of accepted requests.
        var accepted: [Int64] = []
        /// Clock readings around which requests may be refused, with their true time.
        var incidents: [(reading: Int64, at: Int64)] = []
        var (claimed, refused, replays) = (0, 0, 0)
        var story: [String] = []
        private var copy: Store.Disk?
        /// The note in the last backup.
        private var backup: (until: Int64, loss: HistoryLoss)?
        /// The last restore. The store refuses requests dated near one of `readings`. `at` is the true time of the last reading.
        /// `distance` is the smallest difference between the clock and the monotonic clock since `at`.
        private var restored: (at: Int64, readings: [Int64], distance: Int64)?
        /// The number of requests that were accepted before the last restore.
        private var lostCount = 0
        private let errors: [Int64] = [
            4, 6, 40, 59, 100, 300, 661, 1300, 2000, 3600, 31_536_000, -4, -6, -40, -700, -3600,
        ]

        init(seed: UInt64) {
            numbers = SeededNumbers(seed: seed)
            window = [0, 5, 60, 300].randomElement(using: &numbers) ?? 60
        }

        var wall: Int64 { trueTime + error }

        mutating func tell(_ what: String) { story.append("\(trueTime), shown as \(wall): \(what)") }

        mutating func happen(_ what: String) {
            tell(what)
            incidents.append((wall, trueTime))
        }

        mutating func pass(_ seconds: Int64) {
            (trueTime, monotonic) = (trueTime + seconds, monotonic + seconds)
            if error != 0, trueTime >= errorEnds { setError(0) }
        }

        mutating func setError(_ new: Int64) {
            happen("the clock will be off by \(new)")
            error = new
            happen("the clock is off")
        }

        mutating func makeError() {
            errorEnds = trueTime + .random(in: 1...(Bool.random(using: &numbers) ? 60 : 2500), using: &numbers)
            setError(errors.randomElement(using: &numbers) ?? 0)
        }

        mutating func losePower() {
            happen("power is lost")
            pass(.random(in: 1...90, using: &numbers))
            monotonic = 5
            store.losePower(now: wall, monotonic: 5)
            // The copy is dropped, because its monotonic readings are of the previous boot.
            copy = nil
            happen("the machine is back")
        }

        mutating func loseClaims() {
            replay()
            happen("all claims are lost")
            store.loseClaims(now: wall, monotonic: monotonic)
        }

        /// Loses all claims and most of the history. The clock may become wrong or right meanwhile.
        mutating func loseDisk() {
            happen("the disk is lost")
            if Bool.random(using: &numbers) {
                if error == 0 { makeError() } else { setError(0) }
            }
            pass([0, 1, 30, 700].randomElement(using: &numbers) ?? 0)
            happen("the store starts over")
            incidents.append((store.note.until, trueTime))
            store.loseDisk(Bool.random(using: &numbers) ? copy : nil, now: wall, monotonic: monotonic)
            copy = nil
        }

        mutating func makeCopy() { copy = store.copy }

        /// Performs a step without a fault. If a fault is due instead, returns a number from 925 to 999.
        mutating func act() -> Int? {
            let number = Int.random(in: 0..<1000, using: &numbers)
            switch number {
            case ..<500: send()
            case ..<700: replay()
            case ..<860: pass(.random(in: 1...30, using: &numbers))
            case ..<880: store.synchronize()
            case ..<920: store.purge()
            case ..<925: pass(700)
            default: return number
            }
            return nil
        }

        mutating func makeBackup() { backup = store.note }

        /// Restores the last backup, while the clock may be wrong.
        mutating func restore() {
            guard let backup else { return }
            happen("the disk is lost, and a backup restored")
            if Bool.random(using: &numbers) {
                if error == 0 { makeError() } else { setError(0) }
            }
            pass([0, 1, 30, 700].randomElement(using: &numbers) ?? 0)
            happen("the store starts over")
            // A restore is refused if the clock is before the time of the backup, so the clock is corrected first.
            if wall < backup.until - 60 { setError(0) }
            store.restore(backup, now: wall, monotonic: monotonic)
            (restored, lostCount) = ((trueTime, [wall], wall - monotonic), accepted.count)
            copy = nil
        }

        /// Notes the clock's reading. The store reads the clock before each answer.
        private mutating func readClock() {
            if error != 0 { incidents.append((wall, trueTime)) }
            guard let known = restored else { return }
            let distance = wall - monotonic
            restored?.distance = min(known.distance, distance)
            let isStep = abs(distance - known.distance) > ClockHistory.tolerance
            if isStep, trueTime - known.at <= ReplayClaim.longestLife {
                restored = (trueTime, known.readings + [wall], distance)
            }
        }

        /// Whether a request may be accepted twice: the lost store had accepted it, and its date is near none of the readings in
        /// `restored`. Nothing on the machine shows that it was accepted.
        private func isUnknown(_ number: Int) -> Bool {
            guard number < lostCount, let restored else { return false }
            return !restored.readings.contains {
                ($0 - ReplayClaim.life...$0 + max(window, 5)).contains(accepted[number])
            }
        }

        private func isFresh(_ date: Int64) -> Bool { (wall - 600...wall + window).contains(date) }

        /// Whether a refusal of this date has a cause: a recent incident, or one whose reading is near the date.
        private func mayRefuse(_ date: Int64) -> Bool {
            incidents.contains { incident in
                trueTime - incident.at <= ReplayClaim.life + 300 + 10
                    || (incident.reading - ReplayClaim.life - 10...incident.reading + 310).contains(date)
            }
        }

        mutating func send() {
            let base = Bool.random(using: &numbers) ? wall : trueTime
            let date = base + Int64.random(in: -5...max(4, Bool.random(using: &numbers) ? window : 4), using: &numbers)
            guard isFresh(date) else { return }
            readClock()
            let number = accepted.count
            switch store.claim(number, date: date, now: wall, monotonic: monotonic, window: window) {
            case .claimed:
                tell("claimed \(date)")
                accepted.append(date)
                claimed += 1
            case .taken: Issue.record("a fresh request was a replay")
            case let outcome:
                refused += 1
                if error == 0, abs(date - trueTime) <= 5, !mayRefuse(date) {
                    Issue.record("refused \(date) without a cause: \(outcome)\n\(story.joined(separator: "\n"))")
                }
            }
        }

        mutating func replay() {
            let near = accepted.indices.filter { isFresh(accepted[$0]) }
            for number in Set(near.suffix(3) + near.shuffled(using: &numbers).prefix(12)) {
                replays += 1
                let date = accepted[number]
                readClock()
                let outcome = store.claim(number, date: date, now: wall, monotonic: monotonic, window: window)
                if outcome == .claimed, !isUnknown(number) {
                    Issue.record("accepted twice: \(date) at \(wall)\n\(story.joined(separator: "\n"))")
                }
            }
        }
    }

    // Two seeds are always tested. 619: the claims are lost, and the clock falls back by twelve minutes. 269: the clock is ahead
    // by five minutes, falls back, is ahead by an hour, and falls back again.
    @Test(arguments: sample(1...200) + [269, 619] as [UInt64])
    func `a request is accepted only if every claim that may have been taken for it is known`(_ seed: UInt64) {
        var model = Model(seed: seed)
        let jumps: [Int64] = [4, 6, 40, 300, 661, 1300, 3600, 31_536_000, -4, -6, -40, -700, -3600]
        for _ in 0..<1500 {
            switch Int.random(in: 0..<1000, using: &model.numbers) {
            case ..<500: model.send()
            case ..<700: model.replay()
            case ..<850: model.pass(.random(in: 1...25, using: &model.numbers))
            case ..<900: model.store.synchronize()
            case ..<970: model.store.purge()
            case ..<985 where model.error == 0:
                model.errorEnds = model.trueTime + .random(in: 1...60, using: &model.numbers)
                model.setError(jumps.randomElement(using: &model.numbers) ?? 0)
            case ..<985: model.pass(100)
            case ..<995:
                model.losePower()
            default: model.loseClaims()
            }
        }
        #expect(model.claimed > 50 && model.replays > 50, "\(model.claimed) claimed, \(model.replays) replays")
    }

    /// If the disk is lost, the store starts over from a note of a correct or wrong reading, and sometimes from an earlier copy of
    /// its history. The clock may be wrong for a long time, by changing errors. It may become wrong or correct while the store is
    /// down.
    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `no request is accepted twice if faults follow each other`(_ seed: UInt64) {
        var model = Model(seed: seed)
        for _ in 0..<1000 {
            guard let fault = model.act() else { continue }
            switch fault {
            case ..<930: model.makeCopy()
            case ..<970 where model.error == 0 || Int.random(in: 0..<3, using: &model.numbers) == 0: model.makeError()
            case ..<970: model.pass(100)
            case ..<980: model.losePower()
            case ..<985: model.loseClaims()
            default: model.loseDisk()
            }
        }
        model.replay()
        #expect(model.claimed > 20 && model.replays > 20, "\(model.claimed) claimed, \(model.replays) replays")
    }

    /// The store starts over with only the note of a backup. The clock may be wrong at the restore, and may step after it.
    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `after a restore, no request is accepted twice once the clock has stepped ahead`(_ seed: UInt64) {
        var model = Model(seed: seed)
        for _ in 0..<1000 {
            guard let fault = model.act() else { continue }
            switch fault {
            case ..<940: model.makeBackup()
            case ..<970 where model.error == 0 || Int.random(in: 0..<3, using: &model.numbers) == 0: model.makeError()
            case ..<970: model.setError(0)
            default: model.restore()
            }
        }
        #expect(model.claimed > 20 && model.replays > 20, "\(model.claimed) claimed, \(model.replays) replays")
    }

    /// A server loses its claims. They were made by nodes with different clocks, until the nodes' leases ended.
    @Test(arguments: sample(1...50 as ClosedRange<UInt64>))
    func `a request that any node may have accepted before a loss is accepted by no node after it`(_ seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        let tolerance = ClaimHistory.clockTolerance
        for _ in 0..<200 {
            let reading = Int64.random(in: 1_000_000...2_000_000, using: &numbers)
            let window = Int64.random(in: 0...300, using: &numbers)
            let history = ClaimHistory(
                loss: HistoryLoss(
                    around: [reading...reading], clocksApart: ClaimHistory.nodesApart, lease: ClaimHistory.lease))
            // Each node's clock is within the tolerance of the store's clock, so the clocks of two nodes differ by at most twice
            // the tolerance.
            let lossByFirst = reading + .random(in: -2 * tolerance...2 * tolerance, using: &numbers)
            let madeAt = lossByFirst + Int64.random(in: -900...ClaimHistory.lease, using: &numbers)
            let date = madeAt + Int64.random(in: -600...window, using: &numbers)
            let judgedAt = reading + Int64.random(in: -2 * tolerance...900, using: &numbers)
            guard (judgedAt - 600...judgedAt + window).contains(date) else { continue }
            let refusal = history.refusal(
                timestamp: UnixTime(date), expiresAt: UnixTime(date) + ReplayClaim.life, now: UnixTime(judgedAt),
                futureWindow: window)
            #expect(refusal != nil, "dated \(date - reading), judged \(judgedAt - reading) after the reading")
        }
    }
}
