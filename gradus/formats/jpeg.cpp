/// libjpeg reports failures by jumping. Between a setjmp and the code that it guards there are no objects with
/// destructors.
#include "gradus/formats/jpeg.h"
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <jpeglib.h>
#include <jerror.h>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"

namespace gradus {
namespace {

struct Decoder {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void give_up(j_common_ptr jpeg) {
  auto& decoder = *static_cast<Decoder*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, decoder.message);
  std::longjmp(decoder.failed, 1);
}

/// Data that are cut off or damaged are only warned of, and filled up with grey; here they are errors. Stray bytes
/// between the parts of a file do no harm.
void note_warning(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  const int code = jpeg->err->msg_code;
  if (code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR) give_up(jpeg);
}

/// False if it failed: decoder.message says why.
bool begin(Decoder& decoder, const unsigned char* bytes, unsigned long size, int channels) {
  decoder.jpeg.err = jpeg_std_error(&decoder.errors);
  decoder.jpeg.client_data = &decoder;
  decoder.errors.error_exit = give_up;
  decoder.errors.emit_message = note_warning;
  if (setjmp(decoder.failed)) return false;
  jpeg_create_decompress(&decoder.jpeg);
  decoder.jpeg.client_data = &decoder;
  jpeg_mem_src(&decoder.jpeg, bytes, size);
  jpeg_read_header(&decoder.jpeg, TRUE);
  const bool grey = channels == 1 || (channels == 0 && decoder.jpeg.num_components == 1);
  decoder.jpeg.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  decoder.jpeg.dct_method = JDCT_ISLOW;
  jpeg_calc_output_dimensions(&decoder.jpeg);
  return true;
}

bool read_rows(Decoder& decoder, unsigned char* out) {
  if (setjmp(decoder.failed)) return false;
  jpeg_start_decompress(&decoder.jpeg);
  const std::size_t row =
      static_cast<std::size_t>(decoder.jpeg.output_width) * static_cast<std::size_t>(decoder.jpeg.output_components);
  while (decoder.jpeg.output_scanline < decoder.jpeg.output_height) {
    JSAMPROW place = out + row * decoder.jpeg.output_scanline;
    jpeg_read_scanlines(&decoder.jpeg, &place, 1);
  }
  jpeg_finish_decompress(&decoder.jpeg);
  return true;
}

}  // namespace

Tensor decode_jpeg(std::span<const std::byte> bytes, const std::string& name, int channels, std::int64_t pixels) {
  Decoder decoder;
  const struct End {
    jpeg_decompress_struct& jpeg;
    ~End() { jpeg_destroy_decompress(&jpeg); }
  } end{decoder.jpeg};
  const auto check = [&](bool ok) { require<DataError>(ok, name, ": a damaged JPEG: ", decoder.message); };
  check(begin(decoder, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), channels));
  const std::int64_t height = decoder.jpeg.output_height, width = decoder.jpeg.output_width;
  require<DataError>(height > 0 && width > 0 && height <= pixels / width, name, ": an image of ", height, " x ", width,
                     " pixels; expected 1 to ", pixels);
  const std::int64_t components = decoder.jpeg.out_color_space == JCS_GRAYSCALE ? 1 : 3;
  Ref<Buffer> image = Buffer::allocate(height * width * components, "image");
  check(read_rows(decoder, image->data<unsigned char>()));
  return Tensor::of_buffer({u8, {height, width, components}}, std::move(image));
}

}  // namespace gradus
