/* Wine 8 (Debian 12) lacks this library of Windows, from which Rust's standard library takes random bytes. Only the trial under Wine has it. */
typedef int BOOL;
__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *buffer, unsigned long length);

__declspec(dllexport) BOOL __stdcall ProcessPrng(unsigned char *buffer, unsigned long long length)
{
    while (length > 0) {
        unsigned long part = length > 1u << 20 ? 1u << 20 : (unsigned long)length;
        if (!SystemFunction036(buffer, part))
            return 0;
        buffer += part;
        length -= part;
    }
    return 1;
}
