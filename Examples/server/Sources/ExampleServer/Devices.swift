import Crypto
import Foundation

/// A registered device.
struct Device: Sendable {
    /// How the device signs.
    enum Key: Sendable {
        /// A key in the Secure Enclave that only signs assertions. Their counter only grows.
        case appAttest(P256.Signing.PublicKey, attestedExtensions: Bool, counter: UInt32)
        /// A key in the Keystore, which signs bytes.
        case keystore(P256.Signing.PublicKey)
    }

    let id: String
    var key: Key

    var publicKey: P256.Signing.PublicKey {
        switch key {
        case .appAttest(let publicKey, _, _), .keystore(let publicKey): publicKey
        }
    }
}

/// Devices by their id, in memory. A real server keeps them in a database.
public actor Devices {
    private var devices: [String: Device] = [:]
    private var keys: Set<Data> = []

    public init() {}

    /// Adds a device. A key belongs to one device: a database needs a unique index for this.
    func register(_ key: Device.Key) throws(Refusal) -> String {
        let device = Device(id: UUID().uuidString.lowercased(), key: key)
        guard keys.insert(device.publicKey.x963Representation).inserted else {
            throw Refusal(.keyTaken, "the key is registered already")
        }
        devices[device.id] = device
        return device.id
    }

    func device(_ id: String) -> Device? { devices[id] }

    /// Stores the counter of an assertion if the stored one is still `previous`. This compare-and-set accepts only one of two
    /// copies of an assertion.
    func advanceCounter(of id: String, from previous: UInt32, to counter: UInt32) -> Bool {
        guard case .appAttest(let publicKey, let attestedExtensions, previous) = devices[id]?.key else { return false }
        devices[id]?.key = .appAttest(publicKey, attestedExtensions: attestedExtensions, counter: counter)
        return true
    }
}
