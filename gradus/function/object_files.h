/// Steps as object files, for programs that link nothing of the library: the results of Function::export_object, and
/// the return of such a program's state.
#pragma once
#include <filesystem>
#include <string>
#include <vector>
#include "gradus/function/variable.h"

namespace gradus {

/// The files of export_object: machine code, and its interface as a header in C99.
struct ObjectFiles {
  std::filesystem::path object, header;  // machine code; its interface
  std::filesystem::path weights = {};    // empty unless ObjectOptions::weights asks for it
};

/// Options of export_object.
struct ObjectOptions {
  /// "avx2" or "avx512" of x86-64, "neon" of 64-bit ARM; empty: that of this machine, or the first one of the target.
  /// NAME_supported() tells a program if its processor has it. AMX is never used. Unavailable if the target is this
  /// machine's and this machine cannot run it.
  std::string instruction_set = {};
  /// "x86_64-linux-gnu" or "aarch64-linux-gnu", for programs of such machines; empty: this machine's. Results and state
  /// have the bits that they have here (docs/ahead-of-time.md names the exceptions). Unavailable if this library was
  /// built without the target's kernels, or its tools of binutils are not installed.
  std::string target = {};
  /// A file for the values of Variables and of captured tensors, which are part of the object otherwise. There is no
  /// NAME_init then: the program reads the file, of NAME_weights_bytes bytes, to where its state begins. So captured
  /// tensors may have any size, and another file of the same step gives other weights.
  std::filesystem::path weights = {};
  /// Declarations and comments in C that the header ends with, such as the names of columns.
  std::string declarations = {};
};

class ExportedStep;

/// Writes several steps as one object file with one state, a header, and a weights file if options ask for it: a
/// program trains and predicts with the same weights. The step named `train` is the function STEM_train, and STEM_init,
/// STEM_supported and struct STEM_state are those of all. As Function::export_object else, whose errors it has.
/// InvalidArgument also for names that are no part of a name in C, twice the same, or what an object declares itself.
///
///   export_objects("net", {{"train", step, {{f32, {64, 16}}, {i32, {64}}}}, {"predict", predict, {{f32, {1, 16}}}}});
ObjectFiles export_objects(const std::filesystem::path& stem, const std::vector<ExportedStep>& steps,
                           const ObjectOptions& options = {});

/// Assigns the state of an exported step that a program has written, the bytes of its struct, to the variables of these
/// names, and continues its random numbers. `header`: that of the step. In a new process, first build the model and the
/// optimizer: optimizer.build(model.trainable_variables()). Variables of one name and spec are told apart by their age.
/// All or nothing: DataError if the file has another size or the header is invalid, InvalidArgument for a field that no
/// variable has or of another spec, and for more variables of a name and spec than fields.
void load_object_state(const std::filesystem::path& file, const std::filesystem::path& header,
                       const Variables& variables);

}  // namespace gradus
