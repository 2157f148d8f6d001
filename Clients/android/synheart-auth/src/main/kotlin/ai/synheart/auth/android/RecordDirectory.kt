package ai.synheart.auth.android

import ai.synheart.auth.RecordVersion
import java.io.Closeable
import java.io.File
import java.io.FileOutputStream
import java.io.IOException
import java.nio.channels.FileChannel
import java.nio.channels.OverlappingFileLockException
import java.nio.file.Files
import java.nio.file.NoSuchFileException
import java.nio.file.Path
import java.nio.file.StandardCopyOption
import java.nio.file.StandardOpenOption
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.attribute.FileAttribute
import java.nio.file.attribute.PosixFilePermissions
import java.util.UUID
import java.util.concurrent.TimeUnit

/** The file is larger than any that the client writes. */
internal class OversizedFileException(size: Long) : IOException("a file of $size bytes")

/** Files that are replaced atomically, in the app's own directory. */
internal class RecordDirectory(private val directory: File) {
    /** The bytes of a file; null if there is none. */
    @Throws(IOException::class)
    fun read(name: String): ByteArray? = try {
        val size = Files.size(path(name))
        if (size > MAXIMUM_SIZE) throw OversizedFileException(size)
        Files.readAllBytes(path(name))
    } catch (_: NoSuchFileException) {
        null
    }

    /** Replaces a file: temporary file, fsync, rename, fsync of the directory. */
    @Throws(IOException::class)
    fun write(name: String, bytes: ByteArray) {
        ensureExists()
        val temporary = File(directory, ".$name.${UUID.randomUUID()}$TEMPORARY")
        try {
            Files.newByteChannel(temporary.toPath(), OPTIONS, OWNER_ONLY).close()
            FileOutputStream(temporary).use { stream ->
                stream.write(bytes)
                stream.fd.sync()
            }
            Files.move(temporary.toPath(), path(name), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
        } catch (error: IOException) {
            temporary.delete()
            throw error
        }
        synchronize()
        removeLeftovers(name)
    }

    /** Removes a file. Succeeds if there is none. */
    @Throws(IOException::class)
    fun remove(name: String) {
        if (Files.deleteIfExists(path(name))) synchronize()
        removeLeftovers(name)
    }

    /** Copies a file to another name, unless a file of that name exists. */
    @Throws(IOException::class)
    fun copy(name: String, to: String) {
        if (!Files.exists(path(to))) read(name)?.let { write(to, it) }
    }

    fun version(name: String): RecordVersion? = try {
        val attributes = Files.readAttributes(path(name), BasicFileAttributes::class.java)
        val nanoseconds = attributes.lastModifiedTime().to(TimeUnit.NANOSECONDS)
        RecordVersion(
            serial = attributes.fileKey()?.hashCode()?.toLong() ?: 0, size = attributes.size(),
            seconds = nanoseconds / NANOSECONDS, nanoseconds = nanoseconds % NANOSECONDS,
        )
    } catch (_: IOException) {
        null
    }

    /**
     * Takes a lock against all threads and processes; null if another holder has it.
     *
     * The system's lock belongs to the process, and ends when the process closes any descriptor of the file. So the process opens
     * the file of a lock at most once at a time: [held] has the files that are open.
     */
    @Throws(IOException::class)
    fun tryLock(name: String): Closeable? {
        ensureExists()
        val file = path(name).toAbsolutePath().normalize()
        synchronized(held) { if (!held.add(file)) return null }
        return lock(file) ?: null.also { synchronized(held) { held.remove(file) } }
    }

    /** The system's lock; null if another process has it. If this function throws, the file is no longer in [held]. */
    private fun lock(file: Path): HeldLock? {
        val channel = try {
            FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)
        } catch (error: IOException) {
            synchronized(held) { held.remove(file) }
            throw error
        }
        val lock = try {
            channel.tryLock()
        } catch (_: OverlappingFileLockException) {
            null
        } catch (error: IOException) {
            channel.close()
            synchronized(held) { held.remove(file) }
            throw error
        }
        if (lock == null) channel.close()
        return if (lock == null) null else HeldLock(file, channel)
    }

    private class HeldLock(private val file: Path, private val channel: FileChannel) : Closeable {
        private var isOpen = true

        override fun close() {
            synchronized(this) {
                if (!isOpen) return
                isOpen = false
            }
            try {
                channel.close()
            } finally {
                synchronized(held) { held.remove(file) }
            }
        }
    }

    private fun ensureExists() {
        if (!directory.isDirectory && !directory.mkdir() && !directory.isDirectory) throw IOException("the directory of records cannot be made")
    }

    private fun path(name: String): Path = File(directory, name).toPath()

    // Some systems cannot fsync a directory. They write the rename with the next checkpoint.
    private fun synchronize() {
        try { FileChannel.open(directory.toPath(), StandardOpenOption.READ).use { it.force(true) } } catch (_: IOException) { }
    }

    /** Removes the temporary files of processes that died while they wrote. */
    private fun removeLeftovers(name: String) {
        val limit = System.currentTimeMillis() - TimeUnit.HOURS.toMillis(1)
        directory.listFiles { file -> file.name.startsWith(".$name.") && file.name.endsWith(TEMPORARY) && file.lastModified() < limit }
            ?.forEach { it.delete() }
    }

    private companion object {
        /** The files of the locks that this process holds or is taking. */
        val held = HashSet<Path>()

        /** A larger file is not the client's. */
        const val MAXIMUM_SIZE = 256L * 1024
        const val TEMPORARY = ".tmp"
        val OPTIONS = setOf(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
        val OWNER_ONLY: FileAttribute<*> = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
        const val NANOSECONDS = 1_000_000_000L
    }
}
