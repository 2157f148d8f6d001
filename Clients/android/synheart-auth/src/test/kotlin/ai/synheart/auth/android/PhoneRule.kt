package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.StorageException
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.StandInDevice
import android.os.Build
import java.nio.file.Path
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.rules.ExternalResource
import org.junit.rules.TemporaryFolder

/** A phone with Android 16, a StrongBox, and no faults. */
class PhoneRule : ExternalResource() {
    private val folder = TemporaryFolder()
    lateinit var device: StandInDevice
        private set
    val keystore: KeystoreDaemon get() = device.keystore

    /** The number of pauses of the client. */
    var pauses = 0
    private var duringPause: () -> Unit = {}

    val path: Path get() = folder.root.toPath()

    override fun before() {
        folder.create()
        Build.VERSION.SDK_INT = NEWEST
        restart()
    }

    override fun after() {
        Build.VERSION.SDK_INT = NEWEST
        folder.delete()
    }

    /** Starts another process of the app. */
    fun restart() {
        device = StandInDevice.start(path)
    }

    /** Runs a function at the next pause. */
    fun duringPause(body: () -> Unit) {
        duringPause = body
    }

    internal fun keys(
        attestation: AndroidKeyStore.Attestation = AndroidKeyStore.Attestation.IF_POSSIBLE, usesStrongBox: Boolean = true,
    ) = AndroidKeyStore(Keystore(pause = ::pause), attestation, usesStrongBox)

    internal fun storage() = FileStorage(device.context(), EncryptedRecords(Keystore()))

    fun pause() {
        pauses++
        duringPause.also { duringPause = {} }()
    }

    companion object {
        const val NEWEST = 36
        const val ALIAS = "synheart_auth_com.example.app"
        val CHALLENGE = ByteArray(32) { it.toByte() }
    }
}

fun expect(code: DeviceKeyStoreException.Code, body: () -> Any?) {
    assertEquals(code, assertThrows(DeviceKeyStoreException::class.java) { body() }.code)
}

fun expect(code: StorageException.Code, body: () -> Any?) {
    assertEquals(code, assertThrows(StorageException::class.java) { body() }.code)
}
