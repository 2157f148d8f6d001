package ai.synheart.auth.android

import ai.synheart.auth.StorageException.Code
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import android.os.Build
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import java.io.File
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.TimeUnit
import javax.crypto.Cipher
import javax.crypto.KeyGenerator
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNotNull
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class FileStorageTest {
    @get:Rule
    val phone = PhoneRule()

    private val name = "ab".repeat(32)
    private val record = """{"state":"registered","device_id":"secret"}""".toByteArray()
    private val folder: File get() = phone.device.credentialEncrypted().resolve("no_backup/ai.synheart.auth").toFile()
    private val file: File get() = File(folder, "$name.record")

    @Test
    fun `a record survives the process and is gone when removed`() {
        assertNull(phone.storage().read(name))
        phone.storage().write(name, record)
        phone.restart()
        assertArrayEquals(record, phone.storage().read(name))
        phone.storage().remove(name)
        assertNull(phone.storage().read(name))
        phone.storage().remove(name)
    }

    @Test
    fun `a record is a plain file of its owner in the folder that is in no backup`() {
        phone.storage().write(name, record)
        assertArrayEquals(record, file.readBytes())
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file.toPath())))
        assertEquals(emptyList<String>(), phone.keystore.aliases())
    }

    @Test
    fun `before the first unlock everything is unavailable, and nothing is new`() {
        phone.storage().write(name, record)
        phone.device.reboot()
        val storage = phone.storage()
        expect(Code.UNAVAILABLE) { storage.read(name) }
        expect(Code.UNAVAILABLE) { storage.write(name, record) }
        expect(Code.UNAVAILABLE) { storage.remove(name) }
        expect(Code.UNAVAILABLE) { storage.tryLock(name, "operation") }
        assertNull(storage.version(name))
        phone.device.unlock()
        assertArrayEquals(record, storage.read(name))
    }

    @Test
    fun `a phone that was never used is unavailable before the first unlock, too`() {
        phone.device.reboot()
        expect(Code.UNAVAILABLE) { phone.storage().read(name) }
    }

    @Test
    fun `device-protected storage works before the first unlock, with keys and records of its own`() {
        val locked = AndroidConfiguration("https://auth.example.com").with(phone.device.context().createDeviceProtectedStorageContext())
        val unlocked = AndroidConfiguration("https://auth.example.com").with(phone.device.context())
        unlocked.storage.write(name, record)
        phone.device.reboot()
        assertNull(locked.storage.read(name))
        locked.storage.write(name, "other".toByteArray())
        assertArrayEquals("other".toByteArray(), locked.storage.read(name))
        val key = locked.keyStore.create(PhoneRule.ALIAS, null)
        phone.device.unlock()
        assertArrayEquals(record, unlocked.storage.read(name))
        assertNull(unlocked.keyStore.load(PhoneRule.ALIAS))
        assertArrayEquals(key, locked.keyStore.load(PhoneRule.ALIAS))
    }

    // Records of earlier versions

    /** Writes the record encrypted by a key of the Keystore, as earlier versions did. */
    private fun writeEncrypted(name: String = this.name) {
        val key = KeyGenerator.getInstance("AES", Keystore.PROVIDER).run {
            init(
                KeyGenParameterSpec.Builder(KEY, KeyProperties.PURPOSE_ENCRYPT or KeyProperties.PURPOSE_DECRYPT)
                    .setBlockModes(KeyProperties.BLOCK_MODE_GCM).setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
                    .setKeySize(256).build(),
            )
            generateKey()
        }
        val bytes = Cipher.getInstance("AES/GCM/NoPadding").run {
            init(Cipher.ENCRYPT_MODE, key)
            updateAAD("synheart-auth/record/v1\n$name".toByteArray())
            val sealed = doFinal(record)
            byteArrayOf(1) + iv + sealed
        }
        phone.storage().write(name, bytes)
    }

    @Test
    fun `an encrypted record of an earlier version is read, and plain from then on`() {
        writeEncrypted()
        assertArrayEquals(record, phone.storage().read(name))
        assertArrayEquals(record, file.readBytes())
        phone.keystore.deleteEverything()
        assertArrayEquals(record, phone.storage().read(name))
    }

    @Test
    fun `an encrypted record that another process holds is read and stays`() {
        writeEncrypted()
        phone.storage().tryLock(name, "record")!!.use { assertArrayEquals(record, phone.storage().read(name)) }
        assertEquals(1, file.readBytes().first().toInt())
    }

    @Test
    fun `a Keystore that is locked or busy makes an encrypted record unavailable, never absent or damaged`() {
        for (version in listOf(26, 31, 33, 36)) {
            Build.VERSION.SDK_INT = version
            for (code in listOf(KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.LOCKED, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.TOO_MANY_OPERATIONS)) {
                for (call in listOf(Call.CIPHER_START, Call.CIPHER_FINISH)) {
                    writeEncrypted()
                    phone.keystore.failAlways(call, code)
                    expect(Code.UNAVAILABLE) { phone.storage().read(name) }
                    phone.keystore.works()
                    assertArrayEquals(record, phone.storage().read(name))
                }
            }
        }
    }

    @Test
    fun `an encrypted record that cannot be opened is damaged, and a copy stays`() {
        val losses = listOf<() -> Unit>(
            { phone.keystore.deleteEverything() }, { phone.keystore.corrupt(KEY) }, { phone.keystore.invalidate(KEY) },
            { file.writeBytes(file.readBytes().also { it[20] = (it[20] + 1).toByte() }) }, { file.writeBytes(byteArrayOf(1, 2, 3)) },
        )
        for (loss in losses) {
            writeEncrypted()
            loss()
            expect(Code.DAMAGED) { phone.storage().read(name) }
            assertTrue(File(folder, "$name.unreadable").delete())
        }
    }

    @Test
    fun `an encrypted record whose key is not found is not damaged while the Keystore's canary fails`() {
        writeEncrypted()
        for (code in listOf(KeystoreDaemon.KEY_NOT_FOUND, KeystoreDaemon.VALUE_CORRUPTED)) {
            phone.keystore.failAlways(Call.GET, code)
            expect(Code.UNAVAILABLE) { phone.storage().read(name) }
            phone.keystore.works()
        }
        // Only the first look-up of the key fails. The canary (a test key) works, and the second look-up finds the key.
        phone.keystore.failNext(Call.GET, KeystoreDaemon.KEY_NOT_FOUND)
        assertArrayEquals(record, phone.storage().read(name))
    }

    @Test
    fun `one encrypted record cannot take another's place`() {
        writeEncrypted("cd".repeat(32))
        File(folder, "${"cd".repeat(32)}.record").copyTo(file)
        expect(Code.DAMAGED) { phone.storage().read(name) }
    }

    // The canary (a test file that each check replaces), and storage that fails

    @Test
    fun `each check reads the canary and writes a new one`() {
        val canary = File(folder, "canary")
        phone.storage().check()
        val first = canary.readText()
        phone.storage().check()
        assertNotEquals(first, canary.readText())
        for (damage in listOf("another", "x".repeat(300_000))) {
            canary.writeText(damage)
            expect(Code.UNAVAILABLE) { phone.storage().check() }
            // The failed check wrote a new canary (a test value). Otherwise every later check would fail.
            phone.storage().check()
        }
    }

    @Test
    fun `a file larger than any record is damaged`() {
        phone.storage().write(name, record)
        file.writeBytes(ByteArray(300_000))
        expect(Code.DAMAGED) { phone.storage().read(name) }
    }

    @Test
    fun `reading the version is one stat of a file`() {
        phone.storage().write(name, record)
        val storage = phone.storage()
        val before = phone.device.userManagerCalls.get()
        assertNotNull(storage.version(name))
        assertEquals(before, phone.device.userManagerCalls.get())
        storage.read(name)
        assertEquals(before + 1, phone.device.userManagerCalls.get())
    }

    @Test
    fun `storage without space is unavailable, and the old record stays`() {
        phone.storage().write(name, record)
        val room = folder.resolveSibling("room")
        assertTrue(folder.renameTo(room))
        // In /proc, as on a full disk, no file can be created.
        Files.createSymbolicLink(folder.toPath(), java.nio.file.Path.of("/proc"))
        expect(Code.UNAVAILABLE) { phone.storage().write(name, record) }
        expect(Code.UNAVAILABLE) { phone.storage().check() }
        Files.delete(folder.toPath())
        assertTrue(room.renameTo(folder))
        assertArrayEquals(record, phone.storage().read(name))
    }

    @Test
    fun `a work profile has records of its own, and they are unavailable while it is off`() {
        phone.storage().write(name, record)
        val profile = TemporaryFolder().apply { create() }
        try {
            val work = ai.synheart.standins.StandInDevice.start(profile.root.toPath())
            val storage = FileStorage(work.context(), EncryptedRecords(Keystore()))
            assertNull(storage.read(name))
            storage.write(name, "work".toByteArray())
            work.reboot()
            expect(Code.UNAVAILABLE) { storage.read(name) }
            work.unlock()
            assertEquals("work", String(storage.read(name)!!))
        } finally {
            profile.delete()
            phone.restart()
        }
        assertArrayEquals(record, phone.storage().read(name))
    }

    @Test
    fun `a folder that cannot be written is unavailable`() {
        folder.parentFile.mkdirs()
        folder.writeText("not a folder")
        expect(Code.UNAVAILABLE) { phone.storage().write(name, record) }
    }

    @Test
    fun `a write removes temporary files of dead processes and keeps those of running ones`() {
        phone.storage().write(name, record)
        val old = File(folder, ".$name.record.old.tmp").apply { writeText("x") }
        old.setLastModified(System.currentTimeMillis() - TimeUnit.HOURS.toMillis(2))
        val young = File(folder, ".$name.record.young.tmp").apply { writeText("x") }
        phone.storage().write(name, record)
        assertFalse(old.exists())
        assertTrue(young.exists())
    }

    @Test
    fun `the version changes with each write, and is unknown without a record`() {
        val storage = phone.storage()
        assertNull(storage.version(name))
        val versions = (1..50).map {
            storage.write(name, record)
            storage.version(name)
        }
        assertEquals(50, versions.toSet().size)
        assertEquals(storage.version(name), storage.version(name))
        storage.remove(name)
        assertNull(storage.version(name))
    }

    @Test
    fun `a lock has one holder in a process`() {
        val lock = phone.storage().tryLock(name, "operation")!!
        assertNull(phone.storage().tryLock(name, "operation"))
        assertNotNull(phone.storage().tryLock(name, "record")?.close())
        lock.close()
        lock.close()
        val again = phone.storage().tryLock(name, "operation")!!
        // The first holder closes its lock once more. This must not release the lock of the second holder.
        lock.close()
        assertNull(phone.storage().tryLock(name, "operation"))
        again.close()
    }

    @Test
    fun `a lock has one holder in all processes, and a process that dies loses its locks`() {
        val lock = phone.storage().tryLock(name, "operation")!!
        assertEquals("taken", otherProcess("lock"))
        lock.close()
        val holder = OtherProcess.start(phone.path, "hold", name)
        assertEquals("free", holder.inputStream.bufferedReader().readLine())
        assertNull(phone.storage().tryLock(name, "operation"))
        holder.destroyForcibly().waitFor()
        assertNotNull(phone.storage().tryLock(name, "operation")?.close())
    }

    @Test
    fun `a process that is killed while it writes leaves a whole record`() {
        repeat(4) { round ->
            val writer = OtherProcess.start(phone.path, "write again and again", name)
            assertEquals("started", writer.inputStream.bufferedReader().readLine())
            // Waits for some writes, and kills the process. It writes without a pause, so a write may be under way.
            val versions = HashSet<Any?>()
            while (versions.size < 5 + 3 * round) versions.add(phone.storage().version(name))
            writer.destroyForcibly().waitFor()
            val bytes = phone.storage().read(name)!!
            assertEquals(5_000, bytes.size)
            assertEquals(1, bytes.toSet().size)
        }
    }

    @Test
    fun `another process reads what this one wrote`() {
        phone.storage().write(name, record)
        assertEquals(String(record), otherProcess("read"))
        assertNotEquals("", otherProcess("lock"))
    }

    private fun otherProcess(what: String): String =
        OtherProcess.start(phone.path, what, name).inputStream.bufferedReader().use { it.readLine() }

    private companion object {
        const val KEY = "synheart_auth_records"
    }
}
