/// Steps as object files, for programs that link nothing of the library: the results of Function::export_object, and
/// the way back for the state of such a program.
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
  /// NAME_supported() is true if the processor that runs the program has it. AMX is never used. Unavailable if the
  /// target is this machine's and this machine cannot run it.
  std::string instruction_set = {};
  /// "x86_64-linux-gnu" or "aarch64-linux-gnu", for programs of such machines; empty: this machine's. Results and state
  /// have the bits that they have here (docs/ahead-of-time.md names the exceptions). Unavailable if this library was
  /// built without the target's kernels, or its tools of binutils are not installed.
  std::string target = {};
  /// A file for the values of Variables and of captured tensors, which are part of the object otherwise. There is no
  /// NAME_init then: the program reads the file, of NAME_weights_bytes bytes, to where its state begins. So captured
  /// tensors may have any size, and a program can load other weights from another file of the same step.
  std::filesystem::path weights = {};
  /// Declarations and comments in C that the header ends with, such as the names of columns.
  std::string declarations = {};
};

class ExportedStep;

/// Writes several steps as one object file with one state, a header, and a weights file if options ask for it: a
/// program trains and predicts with the same weights. The step named `train` is the function STEM_train, and STEM_init,
/// STEM_supported and struct STEM_state serve all steps. Otherwise as Function::export_object, with its errors;
/// InvalidArgument also for a name that cannot be part of a C identifier, that occurs twice, or that the object
/// declares itself.
///
///   export_objects("net", {{"train", step, {{f32, {64, 16}}, {i32, {64}}}}, {"predict", predict, {{f32, {1, 16}}}}});
ObjectFiles export_objects(const std::filesystem::path& stem, const std::vector<ExportedStep>& steps,
                           const ObjectOptions& options = {});

/// Assigns the state of an exported step that a program has written, the bytes of its struct, to the variables of these
/// names, and continues its random numbers. `header`: that of the step. In a new process, first build the model and the
/// optimizer: optimizer.build(model.trainable_variables()). Variables of one name and spec are assigned in the order of
/// their age. All or nothing. DataError if the file has another size or the header is invalid; InvalidArgument for a
/// field that no variable has, or that has another spec, and for more variables of a name and spec than fields.
void load_object_state(const std::filesystem::path& file, const std::filesystem::path& header,
                       const Variables& variables);

}  // namespace gradus
