package ai.synheart.auth.android

import ai.synheart.auth.SynheartAuth
import ai.synheart.standins.StandInDevice
import java.io.File
import java.nio.file.Path
import kotlinx.coroutines.runBlocking

/** Another process of the app, on the same phone. */
object OtherProcess {
    fun start(phone: Path, what: String, name: String, url: String = ""): Process = ProcessBuilder(
        "${System.getProperty("java.home")}/bin/java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m",
        "-cp", System.getProperty("java.class.path"), "ai.synheart.auth.android.OtherProcess", "$phone", what, name, url,
    ).redirectError(ProcessBuilder.Redirect.INHERIT).start()

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
            "write" -> {
                storage.write(name, name.toByteArray())
                println("written")
            }
        }
    }
}
