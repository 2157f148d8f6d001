internal import AuthContract
internal import Verification

// The background work of the service.

extension AuthService {
    /// Sets new rate limits and bounds while the service runs, except `cachedDevices`: the size of the cache does not change.
    public func apply(_ settings: ProtectionSettings) { protection.apply(settings) }

    /// Runs the background work until it is cancelled: follows changes by other processes, reads which devices exist, exchanges
    /// the numbers of live claims with other nodes, writes last-seen times, judges pending proofs, erases expired recordings,
    /// removes credentials that ended long ago, writes verdict counts and removes old ones. Each kind has its own loop, so a slow
    /// provider delays nothing else.
    public func run(noteEvery interval: Duration = .seconds(30)) async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await _ in deviceStore.externalChanges() {
                    devices.forgetAll()
                    apps.forget()
                    credentials.forget()
                    await signingKeys.forget()
                }
            }
            group.addTask {
                while (try? await Task.sleep(for: known.update())) != nil {}
            }
            if protection.shared != nil {
                group.addTask {
                    while (try? await Task.sleep(for: .seconds(1))) != nil { await exchangeShares() }
                }
            }
            let loops = [
                writeLastSeen, settlePendingProofs, eraseExpiredRecordings, removeEndedCredentials, keepHistory,
            ]
            for work in loops {
                group.addTask {
                    while (try? await Task.sleep(for: interval)) != nil { await work() }
                }
            }
        }
        // Write in a separate task: this one is cancelled, and a store does not answer a cancelled caller.
        await Task {
            await writeLastSeen()
            await history.write(isStopping: true)
        }.value
    }

    /// Exchanges the numbers of each app's live claims with other nodes. `run` does it every second.
    package func exchangeShares() async { await protection.exchangeShares() }

    /// Reads the existing device ids, so that unknown ids can be refused without the store. `run` does it every 2 s.
    package func updateKnownDevices() async { await known.update() }

    /// Judges pending registrations whose provider can be reached again. `run` does it too.
    public func settlePendingProofs() async { await pendingProofs?.settle() }

    /// Records a refused receipt of Apple, if the device's app records refused proofs.
    func record(_ proof: @escaping @Sendable () -> RefusedProof, of due: DueReceipt) async {
        guard let app = try? await apps.enabled(due.appID) else { return }
        await recorder.record(proof, .refresh, of: app, device: due.deviceID)
    }

    /// Erases expired recordings. `run` does it too.
    public func eraseExpiredRecordings() async { await recorder.sweep() }

    /// Removes credentials that ended more than `CredentialRules.listedAfterEnd` ago. `run` does it too.
    public func removeEndedCredentials() async { await credentials.sweep() }

    /// Writes the verdict counts of the minutes that have ended, and removes old ones. `run` does it too.
    public func keepHistory() async {
        await history.write()
        await history.expire()
    }

    /// Writes last-seen times to the store, in steps.
    func writeLastSeen() async {
        for step in seen.flush() {
            // If a write fails, the remaining steps would likely fail too. Their times stay for the next flush.
            do { try await deviceStore.writeLastSeen(step) } catch { return }
            seen.markWritten(step)
        }
    }
}
