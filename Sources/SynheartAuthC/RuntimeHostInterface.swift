public import CSynheartAuth
internal import SynheartAuth

// Lets a host replace key store, attestation and storage of the runtime's functions. The C header documents the table.

@_cdecl("synheart_native_install_host")
public func installNativeHost(_ host: UnsafePointer<synheart_native_host>?) -> Int32 {
    guard let table = host?.pointee, table.version == 1, let generateKey = table.generate_key,
        let signBytes = table.sign_bytes, let getAttestation = table.get_attestation,
        let keyExists = table.key_exists, let deleteKey = table.delete_key, let secureStore = table.secure_store,
        let secureLoad = table.secure_load, let secureDelete = table.secure_delete
    else { return 1 }
    let host = HostTable(table)
    let isInstalled = RuntimeHostRegistry.install(
        RuntimeHost(
            generateKey: { generateKey(host.table.context, $0) },
            signBytes: { signBytes(host.table.context, $0, $1, $2) },
            getAttestation: { getAttestation(host.table.context, $0, $1, $2) },
            keyExists: { keyExists(host.table.context, $0) }, deleteKey: { deleteKey(host.table.context, $0) },
            secureStore: { secureStore(host.table.context, $0, $1, $2) },
            secureLoad: { secureLoad(host.table.context, $0, $1) },
            secureDelete: { secureDelete(host.table.context, $0, $1) }))
    return isInstalled ? 0 : 1
}
