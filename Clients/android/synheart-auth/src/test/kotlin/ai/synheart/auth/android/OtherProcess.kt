package ai.synheart.auth.android

import ai.synheart.auth.ResetReason
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.SynheartAuthException
import ai.synheart.standins.StandInDevice
import java.io.File
import java.nio.file.Path
import kotlinx.coroutines.runBlocking

/** Another process of the app, on the same phone. */
object OtherProcess {
    fun start(phone: Path, what: String, name: String, url: String = "", withoutBlocks: Boolean = false): Process {
        val java = listOf(
            "${System.getProperty("java.home")}/bin/java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx64m",
            "-cp", System.getProperty("java.class.path"), "ai.synheart.auth.android.OtherProcess", "$phone", what, name, url,
        )
        // As on a full disk: files can be created and removed, but no byte can be written.
        val limit = if (withoutBlocks) listOf("sh", "-c", "ulimit -f 0; exec \"$@\"", "sh") else emptyList()
        return ProcessBuilder(limit + java).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    }

    @JvmStatic
    fun main(arguments: Array<String>) {
        val (phone, what, name, url) = arguments
        val context = StandInDevice.start(File(phone).toPath()).context()
        val storage = FileStorage(context, EncryptedRecords(Keystore()))
        when (what) {
            "lock", "hold" -> {
                val lock = storage.tryLock(name, "operation")
                println(if (lock == null) "taken" else "free")
                if (what == "hold") Thread.sleep(Long.MAX_VALUE)
            }
            "read" -> println(storage.read(name)?.let { String(it) })
            "write again and again" -> {
                val record = ByteArray(5_000)
                println("started")
                for (round in generateSequence(0) { it + 1 }) storage.write(name, record.apply { fill(round.toByte()) })
            }
            "register" -> {
                val auth = SynheartAuth.create(context, AndroidConfiguration(url, proof = AndroidProof.KEY_ATTESTATION))
                println(runBlocking { auth.registerDevice(name).deviceId })
            }
            "live" -> {
                val auth = SynheartAuth.create(context, AndroidConfiguration(url, proof = AndroidProof.KEY_ATTESTATION))
                val calls = listOf<suspend () -> Any?>(
                    { auth.signRequest(name, "GET", "/") }, { auth.registerDevice(name).status }, { auth.rotateKey(name) },
                    { auth.resetDeviceIdentity(name, ResetReason.USER_REQUESTED) }, { auth.state(name) }, { auth.registerDevice(name) },
                )
                for (call in calls) {
                    val outcome = try { runBlocking { call() } } catch (error: SynheartAuthException) { "${error.code} ${error.recovery}" }
                    println(if (outcome is Map<*, *>) "signed" else outcome)
                }
            }
            "write" -> {
                storage.write(name, name.toByteArray())
                println("written")
            }
        }
    }
}
