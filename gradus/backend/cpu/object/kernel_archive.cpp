/// The archive stands in the library's constants: it is found wherever the library is, in a program that was linked
/// statically, too.
#include "gradus/backend/cpu/object/kernel_archive.h"
#include <cstddef>

__asm__(
    ".pushsection .rodata\n"
    ".balign 16\n"
    ".hidden gradus_kernel_archive_begin\n"
    ".globl gradus_kernel_archive_begin\n"
    "gradus_kernel_archive_begin:\n"
    ".incbin \"" GRADUS_KERNEL_ARCHIVE
    "\"\n"
    ".hidden gradus_kernel_archive_end\n"
    ".globl gradus_kernel_archive_end\n"
    "gradus_kernel_archive_end:\n"
    ".popsection\n");

extern "C" {
extern const char gradus_kernel_archive_begin[] __attribute__((visibility("hidden")));
extern const char gradus_kernel_archive_end[] __attribute__((visibility("hidden")));
}

namespace gradus::object {

std::string_view kernel_archive() {
  return {gradus_kernel_archive_begin,
          static_cast<std::size_t>(gradus_kernel_archive_end - gradus_kernel_archive_begin)};
}

}  // namespace gradus::object
