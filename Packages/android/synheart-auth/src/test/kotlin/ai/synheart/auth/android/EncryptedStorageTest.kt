package ai.synheart.auth.android

import ai.synheart.auth.StorageException.Code
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import android.os.Build
import java.io.File
import java.util.concurrent.TimeUnit
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertNotNull
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test

class EncryptedStorageTest {
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
    fun `a record lies encrypted in the folder that is in no backup`() {
        phone.storage().write(name, record)
        assertTrue(file.isFile)
        assertFalse(String(file.readBytes(), Charsets.ISO_8859_1).contains("registered"))
        val first = file.readBytes()
        phone.storage().write(name, record)
        assertFalse(first.contentEquals(file.readBytes()))
    }

    @Test
    fun `one record cannot take another's place`() {
        val other = "cd".repeat(32)
        phone.storage().write(name, record)
        file.copyTo(File(folder, "$other.record"))
        expect(Code.DAMAGED) { phone.storage().read(other) }
    }

    @Test
    fun `every changed byte is noticed`() {
        phone.storage().write(name, record)
        val bytes = file.readBytes()
        for (index in bytes.indices) {
            file.writeBytes(bytes.copyOf().also { it[index] = (it[index] + 1).toByte() })
            expect(Code.DAMAGED) { phone.storage().read(name) }
        }
        for (length in bytes.indices) {
            file.writeBytes(bytes.copyOf(length))
            expect(Code.DAMAGED) { phone.storage().read(name) }
        }
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

    @Test
    fun `a Keystore that fails makes a record unavailable, never absent or damaged`() {
        phone.storage().write(name, record)
        for (version in listOf(26, 30, 31, 33, 36)) {
            Build.VERSION.SDK_INT = version
            for (code in listOf(
                KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.LOCKED, KeystoreDaemon.SECURE_HW_BUSY, KeystoreDaemon.UNKNOWN_ERROR,
                KeystoreDaemon.TOO_MANY_OPERATIONS,
            )) {
                for (call in listOf(Call.GET, Call.CIPHER_START, Call.CIPHER_FINISH)) {
                    phone.keystore.failAlways(call, code)
                    expect(Code.UNAVAILABLE) { phone.storage().read(name) }
                    expect(Code.UNAVAILABLE) { phone.storage().write(name, "new".toByteArray()) }
                    phone.keystore.failAlways(call, 0)
                    assertArrayEquals(record, phone.storage().read(name))
                }
            }
        }
    }

    @Test
    fun `a Keystore that reports the records' key as absent once does not replace it`() {
        Build.VERSION.SDK_INT = 30
        phone.storage().write(name, record)
        phone.keystore.failNext(Call.GET, KeystoreDaemon.SYSTEM_ERROR, KeystoreDaemon.SYSTEM_ERROR)
        phone.storage().write("cd".repeat(32), record)
        assertArrayEquals(record, phone.storage().read(name))
    }

    @Test
    fun `a record whose key is lost is damaged, and a copy stays`() {
        phone.storage().write(name, record)
        phone.keystore.deleteEverything()
        expect(Code.DAMAGED) { phone.storage().read(name) }
        assertTrue(file.isFile)
        assertTrue(File(folder, "$name.unreadable").isFile)
        // Not a dead end: a reset removes it, and the next record has a new key.
        phone.storage().remove(name)
        assertNull(phone.storage().read(name))
        phone.storage().write(name, record)
        assertArrayEquals(record, phone.storage().read(name))
    }

    @Test
    fun `a records' key that exists and cannot be used is replaced by the next record`() {
        for (corrupted in listOf(listOf(KEY), listOf(KEY, CANARY))) {
            phone.storage().write(name, record)
            corrupted.forEach(phone.keystore::corrupt)
            expect(Code.DAMAGED) { phone.storage().read(name) }
            phone.storage().remove(name)
            assertNull(phone.storage().read(name))
            phone.storage().write(name, record)
            assertArrayEquals(record, phone.storage().read(name))
            phone.restart()
            assertArrayEquals(record, phone.storage().read(name))
        }
    }

    @Test
    fun `a records' key that the system invalidated is replaced by the next record`() {
        for (version in listOf(26, 31, 36)) {
            Build.VERSION.SDK_INT = version
            phone.storage().write(name, record)
            phone.keystore.invalidate(KEY)
            expect(Code.DAMAGED) { phone.storage().read(name) }
            phone.storage().remove(name)
            phone.storage().write(name, record)
            assertArrayEquals(record, phone.storage().read(name))
        }
    }

    @Test
    fun `a replaced key leaves the other records damaged, never absent`() {
        val other = "cd".repeat(32)
        phone.storage().write(other, record)
        phone.keystore.corrupt(KEY)
        phone.storage().write(name, record)
        assertArrayEquals(record, phone.storage().read(name))
        expect(Code.DAMAGED) { phone.storage().read(other) }
    }

    @Test
    fun `a records' key that seems unusable once is not replaced`() {
        phone.storage().write(name, record)
        phone.keystore.failNext(Call.CIPHER_START, KeystoreDaemon.INVALID_KEY_BLOB)
        phone.storage().write("cd".repeat(32), record)
        assertArrayEquals(record, phone.storage().read(name))
    }

    @Test
    fun `no records' key is replaced while the hardware knows none`() {
        phone.storage().write(name, record)
        phone.keystore.failAlways(Call.CIPHER_START, KeystoreDaemon.INVALID_KEY_BLOB)
        expect(Code.UNAVAILABLE) { phone.storage().write("cd".repeat(32), record) }
        phone.keystore.works()
        assertArrayEquals(record, phone.storage().read(name))
    }

    @Test
    fun `a record set aside is encrypted, too`() {
        phone.storage().setAside(name, record)
        assertFalse(String(File(folder, "$name.unreadable").readBytes(), Charsets.ISO_8859_1).contains("registered"))
        assertNull(phone.storage().read(name))
    }

    @Test
    fun `a write that fails leaves the old record and no other file`() {
        phone.storage().write(name, record)
        phone.keystore.failNext(Call.CIPHER_FINISH, KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { phone.storage().write(name, "new".toByteArray()) }
        assertArrayEquals(record, phone.storage().read(name))
        assertEquals(setOf("$name.record", "key.lock"), folder.list()!!.toSet())
    }

    @Test
    fun `a folder that cannot be written is unavailable`() {
        folder.parentFile.mkdirs()
        folder.writeText("not a folder")
        expect(Code.UNAVAILABLE) { phone.storage().write(name, record) }
    }

    @Test
    fun `temporary files of dead processes go with the next write, those of living ones stay`() {
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
        // The first holder's second close must not release it.
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
    fun `two processes that both find no key make one`() {
        val processes = (1..3).map { OtherProcess.start(phone.path, "write", "$it".repeat(64)) }
        for (process in processes) assertEquals("written", process.inputStream.bufferedReader().readLine())
        for (number in 1..3) assertArrayEquals("$number".repeat(64).toByteArray(), phone.storage().read("$number".repeat(64)))
    }

    @Test
    fun `a process that is killed while it writes leaves a whole record`() {
        repeat(4) { round ->
            val writer = OtherProcess.start(phone.path, "write again and again", name)
            assertEquals("started", writer.inputStream.bufferedReader().readLine())
            // Some writes, then death in the middle of one.
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
        const val CANARY = "synheart_auth_canary"
    }
}
