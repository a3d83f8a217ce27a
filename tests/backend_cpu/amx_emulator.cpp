/// Intel's manual (Software Developer's Manual, volume 2, and volume 1, chapter 18) written down: palette 1, whose
/// eight tiles have up to 16 rows of 64 bytes. What the processor would fault on ends the process with a message.
#include "tests/backend_cpu/amx_emulator.h"
#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>
#include <xmmintrin.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "gradus/backend/cpu/isa.h"

namespace gradus {
namespace {

constexpr int tiles = 8, most_rows = 16, most_bytes = 64;

/// The operand of ldtilecfg and sttilecfg.
struct Configuration {
  std::uint8_t palette, start_row, reserved[14];
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};
static_assert(sizeof(Configuration) == 64);

struct State {
  Configuration shapes;
  alignas(64) std::uint8_t data[tiles][most_rows][most_bytes];
};
thread_local State state{};
thread_local std::int64_t emulated = 0;

[[noreturn]] void fault(const char* what) {
  std::fprintf(stderr, "amx_emulator: %s\n", what);
  std::abort();
}
void check(bool holds, const char* what) {
  if (!holds) fault(what);
}

int rows_of(int tile) { return state.shapes.rows[tile]; }
int bytes_of(int tile) { return state.shapes.row_bytes[tile]; }

void check_tile(int tile) {
  check(state.shapes.palette == 1, "#UD: the tiles are not configured");
  check(tile < tiles && rows_of(tile) > 0, "#UD: this tile is not configured");
}

/// What no instruction that writes a tile leaves as it was.
void zero_upper_rows(int tile) {
  for (int row = rows_of(tile); row < most_rows; ++row) std::memset(state.data[tile][row], 0, most_bytes);
}
void write_row(int tile, int row, const void* source) {
  std::memcpy(state.data[tile][row], source, static_cast<std::size_t>(bytes_of(tile)));
  std::memset(state.data[tile][row] + bytes_of(tile), 0, static_cast<std::size_t>(most_bytes - bytes_of(tile)));
}

void configure(const void* memory) {
  Configuration c;
  std::memcpy(&c, memory, sizeof c);
  if (c.palette == 0) return void(state = {});
  check(c.palette == 1, "#GP: no such palette");
  for (auto byte : c.reserved) check(byte == 0, "#GP: a reserved byte is not zero");
  for (int i = 0; i < 16; ++i) {
    check(i < tiles || (c.rows[i] == 0 && c.row_bytes[i] == 0), "#GP: there are eight tiles");
    check(c.rows[i] <= most_rows && c.row_bytes[i] <= most_bytes, "#GP: a tile is too large");
    check((c.rows[i] == 0) == (c.row_bytes[i] == 0), "#GP: a tile has rows or columns alone");
  }
  state = {};
  state.shapes = c;
}

void load(int tile, const std::uint8_t* memory, std::int64_t stride) {
  check_tile(tile);
  for (int row = state.shapes.start_row; row < rows_of(tile); ++row) write_row(tile, row, memory + row * stride);
  zero_upper_rows(tile);
  state.shapes.start_row = 0;
}

void store(int tile, std::uint8_t* memory, std::int64_t stride) {
  check_tile(tile);
  for (int row = state.shapes.start_row; row < rows_of(tile); ++row)
    std::memcpy(memory + row * stride, state.data[tile][row], static_cast<std::size_t>(bytes_of(tile)));
  state.shapes.start_row = 0;
}

void zero(int tile) {
  check_tile(tile);
  std::memset(state.data[tile], 0, sizeof state.data[tile]);
  state.shapes.start_row = 0;
}

/// The even and the odd halves of pairs of bf16, as floats.
void widen(const std::uint8_t* pairs, int count, float* even, float* odd) {
  for (int i = 0; i < count; ++i) {
    std::uint32_t pair;
    std::memcpy(&pair, pairs + 4 * i, sizeof pair);
    const std::uint32_t lower = pair << 16, upper = pair & 0xffff0000;
    std::memcpy(even + i, &lower, sizeof lower);
    std::memcpy(odd + i, &upper, sizeof upper);
  }
}

/// Under a control word that flushes subnormals, results and operands, and rounds to nearest.
[[gnu::target("avx2,fma"), gnu::noinline]] void multiply(int sum, int a, int b) {
  for (int tile : {sum, a, b}) check_tile(tile);
  check(sum != a && sum != b && a != b, "#UD: a tile twice");
  check(bytes_of(sum) % 4 == 0 && bytes_of(a) % 4 == 0 && bytes_of(b) % 4 == 0, "#UD: a part of a pair");
  check(rows_of(sum) == rows_of(a) && bytes_of(a) / 4 == rows_of(b) && bytes_of(b) == bytes_of(sum),
        "#UD: shapes differ");
  const int steps = bytes_of(a) / 4, columns = bytes_of(sum) / 4;
  float b_even[most_rows][16] = {}, b_odd[most_rows][16] = {};
  for (int k = 0; k < steps; ++k) widen(state.data[b][k], columns, b_even[k], b_odd[k]);
  for (int row = 0; row < rows_of(sum); ++row) {
    float a_even[16], a_odd[16], even[16] = {}, odd[16] = {}, sums[16];
    widen(state.data[a][row], steps, a_even, a_odd);
    for (int k = 0; k < steps; ++k) {
      for (int n = 0; n < 16; ++n) even[n] = __builtin_fmaf(a_even[k], b_even[k][n], even[n]);
      for (int n = 0; n < 16; ++n) odd[n] = __builtin_fmaf(a_odd[k], b_odd[k][n], odd[n]);
    }
    std::memcpy(sums, state.data[sum][row], sizeof sums);
    for (int n = 0; n < columns; ++n) {
      const float both = even[n] + odd[n];
      sums[n] += both;
    }
    write_row(sum, row, sums);
  }
  zero_upper_rows(sum);
  state.shapes.start_row = 0;
}

/// Registers in the order of their numbers in instructions.
constexpr int registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/// An instruction with a prefix VEX of three bytes, as all of these have.
class Instruction {
 public:
  Instruction(const std::uint8_t* code, const greg_t* values) : code_(code), values_(values) {
    if (code[0] != 0xc4) return;
    const bool is_0f38 = (code[1] & 0x1f) == 2, is_128_w0 = (code[2] & 0x84) == 0;
    if (!is_0f38 || !is_128_w0) return;
    x_ = ~code[1] >> 6 & 1, b_ = ~code[1] >> 5 & 1, r_ = ~code[1] >> 7 & 1;
    third_ = ~code[2] >> 3 & 15, prefix_ = code[2] & 3, opcode_ = code[3];
    mode_ = code[4] >> 6, reg_ = code[4] >> 3 & 7, rm_ = code[4] & 7;
    length_ = 5;
    if (mode_ != 3) decode_address();
  }
  /// Whether it is one of AMX; then it has been executed.
  bool execute() {
    enum { none, x66, xf3, xf2 };
    if (length_ == 0 || r_) return false;
    const bool is_memory = mode_ != 3;
    if (opcode_ == 0x49 && third_ == 0) {
      if (is_memory && reg_ == 0 && prefix_ == none) return configure(address()), true;
      if (is_memory && reg_ == 0 && prefix_ == x66) return std::memcpy(address(), &state.shapes, 64), true;
      if (!is_memory && prefix_ == none && reg_ == 0 && rm_ == 0) return state = {}, true;
      if (!is_memory && prefix_ == xf2 && rm_ == 0) return zero(reg_), true;
    }
    if (opcode_ == 0x4b && third_ == 0 && is_memory && has_sib_) {
      if (prefix_ == xf2 || prefix_ == x66) return load(reg_, address(), stride_), true;
      if (prefix_ == xf3) return store(reg_, address(), stride_), true;
    }
    if (opcode_ == 0x5c && !is_memory && prefix_ == xf3) return multiply(reg_, rm_, third_), true;
    return false;
  }
  int length() const { return length_; }

 private:
  std::uint8_t* address() const { return reinterpret_cast<std::uint8_t*>(address_); }
  std::int64_t value(int number) const { return values_[registers[number]]; }

  /// The index of an address counts as the stride of tiles; other instructions add it.
  void decode_address() {
    int base = rm_;
    std::int64_t index = 0;
    has_sib_ = rm_ == 4;
    if (has_sib_) {
      const std::uint8_t sib = code_[length_++];
      const int number = (sib >> 3 & 7) | x_ << 3;
      if (number != 4) index = value(number) << (sib >> 6);
      base = sib & 7;
    }
    const bool has_no_base = mode_ == 0 && base == 5;
    const int bytes = mode_ == 1 ? 1 : mode_ == 2 || has_no_base ? 4 : 0;
    std::int64_t displacement = 0;
    if (bytes == 1) displacement = static_cast<std::int8_t>(code_[length_]);
    if (bytes == 4) {
      std::int32_t wide;
      std::memcpy(&wide, code_ + length_, sizeof wide);
      displacement = wide;
    }
    length_ += bytes;
    address_ = displacement;
    if (!has_no_base) address_ += value(base | b_ << 3);
    else if (!has_sib_) address_ += reinterpret_cast<std::int64_t>(code_ + length_);  // relative to what follows
    if (opcode_ == 0x4b) stride_ = index;
    else address_ += index;
  }

  const std::uint8_t* code_;
  const greg_t* values_;
  int x_ = 0, b_ = 0, r_ = 0, third_ = 0, prefix_ = 0, opcode_ = 0, mode_ = 0, reg_ = 0, rm_ = 0, length_ = 0;
  bool has_sib_ = false;
  std::int64_t address_ = 0, stride_ = 0;
};

struct sigaction before;

void handle(int, siginfo_t*, void* context) {
  constexpr unsigned flushing = 0x9fc0;  // subnormal results and operands; all exceptions masked
  _mm_setcsr(flushing);                  // what the thread had comes back with its context
  greg_t* const values = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  // Those that follow at once are spared the way here.
  for (std::int64_t first = emulated;; ++emulated) {
    Instruction instruction(reinterpret_cast<const std::uint8_t*>(values[REG_RIP]), values);
    if (!instruction.execute()) {
      if (emulated == first) sigaction(SIGILL, &before, nullptr);  // it is not ours, and comes again
      return;
    }
    values[REG_RIP] += instruction.length();
  }
}

bool install() {
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGILL, &action, &before) == 0;
}

}  // namespace

bool can_run_amx() {
  static const bool can =
      cpu_backend::has_amx() || (cpu_backend::widest_isa() == cpu_backend::Isa::avx512 && install());
  return can;
}

std::int64_t amx_instructions_emulated() { return emulated; }

}  // namespace gradus

#else

namespace gradus {
bool can_run_amx() { return false; }
std::int64_t amx_instructions_emulated() { return 0; }
}  // namespace gradus

#endif
