/// Runs a program that can create only Unix-domain sockets, with a system call filter like that of systemd's
/// `RestrictAddressFamilies=AF_UNIX`.
package enum UnixSocketsOnly {
    /// The command to put before the program and its arguments.
    package static let wrapper = ["python3", "-c", program]

    private static let program = """
        import ctypes, os, platform, struct, sys
        call = {'x86_64': 41, 'aarch64': 198}[platform.machine()]
        filter = b''.join(struct.pack('HBBI', *line) for line in [
            (0x20, 0, 0, 0), (0x15, 0, 3, call),   # socket(2)?
            (0x20, 0, 0, 16), (0x15, 1, 0, 1),     # of AF_UNIX?
            (6, 0, 0, 0x50000 | 97),               # EAFNOSUPPORT
            (6, 0, 0, 0x7FFF0000)])
        lines = ctypes.create_string_buffer(filter)
        table = struct.pack('HxxxxxxQ', 6, ctypes.addressof(lines))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, table, 0, 0): sys.exit(os.strerror(ctypes.get_errno()))
        os.execvp(sys.argv[1], sys.argv[1:])
        """
}
