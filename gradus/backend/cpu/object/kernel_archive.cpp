/// The archives stand in the library's constants: they are found wherever the library is, in a program that was linked
/// statically, too.
#include "gradus/backend/cpu/object/kernel_archive.h"
#include <cstddef>
#include "gradus/backend/cpu/processors.h"

#define GRADUS_BYTES_OF(file, name)                                                                \
  __asm__(".pushsection .rodata\n.balign 16\n.hidden " name "_begin\n.globl " name "_begin\n" name \
          "_begin:\n.incbin \"" file "\"\n.hidden " name "_end\n.globl " name "_end\n" name "_end:\n.popsection\n");

GRADUS_BYTES_OF(GRADUS_KERNEL_ARCHIVE, "gradus_kernel_archive")
#ifdef GRADUS_AARCH64_ARCHIVE
GRADUS_BYTES_OF(GRADUS_AARCH64_ARCHIVE, "gradus_aarch64_archive")
#endif

extern "C" {
extern const char gradus_kernel_archive_begin[] __attribute__((visibility("hidden")));
extern const char gradus_kernel_archive_end[] __attribute__((visibility("hidden")));
#ifdef GRADUS_AARCH64_ARCHIVE
extern const char gradus_aarch64_archive_begin[] __attribute__((visibility("hidden")));
extern const char gradus_aarch64_archive_end[] __attribute__((visibility("hidden")));
#endif
}

namespace gradus::object {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

std::string_view kernel_archive(std::string_view target) {
  if (target == cpu_backend::own_target) return between(gradus_kernel_archive_begin, gradus_kernel_archive_end);
#ifdef GRADUS_AARCH64_ARCHIVE
  if (target == "aarch64-linux-gnu") return between(gradus_aarch64_archive_begin, gradus_aarch64_archive_end);
#endif
  return {};
}

}  // namespace gradus::object
