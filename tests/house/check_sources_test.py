"""Each rule of check_sources.py finds its violation in a small tree, at the right line, and passes the tree without it."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import check_sources  # noqa: E402

TIDY = {
    "gradus/base/error.h": "/// Errors.\n#pragma once\n",
    "gradus/ops/matmul.h": '/// Products.\n#pragma once\n#include "gradus/base/error.h"\n#include <vector>\n'
                           "namespace gradus {\nstruct Matmul {\n  struct Inner {};\n};\n}\n",
    "gradus/ops/einsum.h": "/// Sums.\n#pragma once\nnamespace gradus {\nstruct Sum {\n  struct Inner {};\n};\n"
                           "namespace {\nstruct Matmul {};\n}\n}\n",
    "gradus/ops/matmul.cpp": '#include "gradus/ops/matmul.h"\n',
    "gradus/gradus.h": '/// All.\n#pragma once\n#include "gradus/ops/matmul.h"\n',
    "gradus/backend/cpu/codegen/jit.cpp": "/// Code.\n#include <llvm/IR/IRBuilder.h>\n",
    "gradus/distribute/waits.cpp": "/// Waits.\nchanged_.wait_until(lock, deadline);\nwaitpid(child, &status, WNOHANG);\n"
                                   "// no deadline: of a process that was killed\n::waitpid(process, nullptr, 0);\n"
                                   "changed_.wait(lock);  // no deadline: of this process\n",
    "gradus/distribute/cluster.h": "/// Ranks.\n#pragma once\n",
    "gradus/distribute/cluster.cpp": '#include "gradus/distribute/cluster.h"\n#include "gradus/distribute/cluster/json.h"\n',
    "gradus/distribute/cluster/json.h": '/// JSON.\n#pragma once\n#include "gradus/distribute/cluster.h"\n',
    "gradus/distribute/messages/rpc.h": '/// Calls.\n#pragma once\n#include "gradus/distribute/cluster/json.h"\n',
    "gradus/backend/parts/lane.cpp": "/// Lanes.\nlog = CallContext::here().log;\nconst FieldScope<&CallContext::log> s(log);\n",
    "gradus/function/call.cpp": "/// Calls.\nshards = CallContext::here().shards;\n",
    "gradus/data/waits.cpp": "/// Waits.\nready_.wait(lock);\n",
    "gradus/nn/mask.cpp": "/// Masks.\nint a;  // of which\n        // What goes on is no opening.\n"
                          "auto s = \"// What\", r = R\"(\"// Who)\";\n" + "int i;  // a place\n" * 32 + "int j;  // Which\n",
    "tests/ops/matmul_test.cpp": '/// Tests.\n#include "gradus/gradus.h"\n',
    "tests/ops/sums_test.cpp": "/// Sums.\nnamespace gradus::rows::sums_test {\nnamespace {\n}\n}\n",
}
WORD = "TO" + "DO"
# file, its text, the line of the finding, a part of the message
VIOLATIONS = [
    ("gradus/base/upward.h", '/// Up.\n#pragma once\n\n#include "gradus/ops/matmul.h"\n', 4, "base includes from ops"),
    ("gradus/base/upward.cpp", "/// Up.\n#include <gradus/ops/matmul.h>\n", 2, "base includes from ops"),
    ("gradus/profile/all.h", '/// All.\n#pragma once\n#include "gradus/gradus.h"\n', 3, "profile includes from gradus.h"),
    ("gradus/ops/relative.cpp", '/// Near.\n#include "matmul.h"\n', 2, "not relative to the root"),
    ("gradus/ops/dangling.cpp", '/// Gone.\n#include "gradus/ops/gone.h"\n', 2, "does not exist"),
    ("gradus/backend/emit.h", "/// Code.\n#pragma once\n#include <llvm/IR/Value.h>\n", 3, "LLVM's header"),
    ("tests/ops/emit_test.cpp", '/// Code.\n#include "llvm-c/Core.h"\n', 2, "LLVM's header"),
    ("gradus/distribute/cluster/up.h", '/// Up.\n#pragma once\n#include "gradus/distribute/messages/rpc.h"\n', 3,
     "cluster includes from messages"),
    ("gradus/distribute/all.h", '/// All.\n#pragma once\n#include "gradus/distribute/messages/rpc.h"\n', 3, "from within"),
    ("gradus/distribute/attic/a.cpp", '/// A.\n#include "gradus/distribute/cluster.h"\n', 2, "attic is no folder"),
    ("gradus/distribute/peers.cpp", "/// Peers.\n#include <ucp/api/ucp.h>\n", 2, "outside a *_component.cpp"),
    ("gradus/ops/long.cpp", "/// Long.\n" + "\n" * 600, 601, "601 lines"),
    ("gradus/ops/later.cpp", f"/// Later.\n// {WORD}: the rest\n", 2, "left unfinished"),
    ("bench/later.py", f"# {WORD}\n", 1, "left unfinished"),
    ("gradus/ops/helpers.cpp", "/// Things.\n", 1, "says nothing"),
    ("gradus/common/things.cpp", "/// Things.\n", 1, "says nothing"),
    ("gradus/kitchen/pan.h", "/// A pan.\n#pragma once\n", 1, "is no room"),
    ("gradus/ops/silent.cpp", "#include <vector>\n", 1, "no first comment"),
    ("gradus/ops/other.cpp", '#include "gradus/ops/matmul.h"\n', 1, "no first comment"),
    ("gradus/ops/loud.cpp", "/// Loud.\nstd::ostringstream out;\n", 2, "a stream has the caller's locale"),
    ("apps/gradus/read.cpp", "/// Read.\nstd::ifstream in(file);\n", 2, "a stream has the caller's locale"),
    ("gradus/ops/number.cpp", "/// Number.\nconst double x = std::strtod(text, &end);\n", 2, "a function of C"),
    ("gradus/ops/line.cpp", "/// Line.\nstd::snprintf(line, 8, format, x);\n", 2, "a function of C"),
    ("apps/gradus/letter.cpp", "/// Letter.\nreturn std::isalnum(c);\n", 2, "a function of C"),
    ("gradus/ops/say.cpp", "/// Say.\nstd::cerr << 12345;\n", 2, "a stream of the caller"),
    ("gradus/train/deep.cpp", "/// Deep.\nconst auto json = nlohmann::json::parse(written);\n", 2, "without a bound"),
    ("gradus/ops/early.cpp", "/// Early.\nreturn *x.observed().data<float>();\n", 2, "Tensor::host()"),
    ("gradus/ops/list.cpp", "/// List.\nstd::vector<int> last(static_cast<std::size_t>(graph.size()), -1);\n", 2, "PerValue"),
    ("gradus/ops/text.cpp", '/// Text.\nrequire_not_negative(n, text("too few: ", n));\n', 2, "where nothing is wrong"),
    ("gradus/ops/place.cpp", "/// Place.\nstd::size_t at(int i) { return static_cast<std::size_t>(i); }\n", 2, "Numbered"),
    ("tests/ops/case.h", "/// Case.\n  std::initializer_list<const char*> says;  // in the error\n", 2, "take std::vector"),
    ("gradus/backend/run.cpp", "/// Run.\nShards* const s = CallContext::here().shards;\n", 2, "state of the thread"),
    ("gradus/backend/run.cpp", "/// Run.\nconst FieldScope<&CallContext::shards> scope(&s);\n", 2, "state of the thread"),
    ("gradus/backend/xla/run.cpp", "/// Run.\n: kind_(default_device().kind) {}\n", 2, "state of the thread"),
    ("gradus/compiler/pass.cpp", "/// Pass.\nthread_local int depth = 0;\n", 2, "state of the thread"),
    ("gradus/distribute/wait.cpp", "/// Wait.\nchanged_.wait(lock, [&] { return is_done; });\n", 2, "without a deadline"),
    ("gradus/distribute/wait.cpp", "/// Wait.\nserver_->Wait();\n", 2, "without a deadline"),
    ("gradus/distribute/wait.cpp", "/// Wait.\nended.get_future().get();\n", 2, "without a deadline"),
    ("apps/gradus/launch.cpp", "/// Wait.\n::poll(all.data(), all.size(), -1);\n", 2, "without a deadline"),
    ("apps/gradus/rank_process.cpp", "/// Wait.\n::waitpid(process, nullptr, 0);\n", 2, "without a deadline"),
    ("gradus/ops/twin.h", "/// Twin.\n#pragma once\nnamespace gradus {\nstruct Matmul : Base {\n};\n}\n", 4,
     "is also a type of gradus/ops/matmul.h"),
    ("gradus/ops/moved.cpp", "/// Moved.\nreturn bound(std::move(work),\n             work->outer);\n", 2, "moved by one argument"),
    ("gradus/ops/moved.cpp", "/// Moved.\nreturn node(made(std::move(op)), op.size());\n", 2, "moved by one argument"),
    ("gradus/ops/moved.cpp", "/// Moved.\nreturn node(op.size(), Made{std::move(op)});\n", 2, "moved by one argument"),
    ("gradus/ops/moved.cpp", "/// Moved.\nreturn node(std::move(*a.op), a.op->size());\n", 2, "moved by one argument"),
    ("tests/ops/sum_test.cpp", "/// Sum.\nnamespace gradus {\nnamespace {\n}\n}\n", 3, "namespace gradus::sum_test {"),
    ("tests/ops/rows_sum.cpp", "/// Sum.\nnamespace gradus::rows {\nnamespace {\n}\n}\n", 3, "other tests"),
    ("gradus/ops/twice.h", "/// Twice.\n", 1, "#pragma once"),
    ("gradus/ops/what.cpp", "/// Sums.\n/// What goes on is no opening.\n\n/// What is summed.\n", 4, "1 of 4 comments of "
     "gradus/ops begin with"),
    ("gradus/ops/of.cpp", "/// Sums.\nint n;  // Of rows.\n", 2, "begin with the subject"),
    ("apps/gradus/who.cpp", "/// Asks.\n/// More.\nint n;\n  // Whether it asks.\n", 4, "1 of 2 comments of apps/gradus"),
    ("gradus/nn/apart.cpp", "/// Which rows count.\n", 1, "2 of 36 comments of gradus/nn"),
    ("gradus/ops/own.cmake", "# Own.\nset(option $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},aarch64>:-mno-x>)\n", 2, "take gradus_on_arm"),
    ("tests/ops/CMakeLists.txt", 'if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")\n', 1, "take gradus_on_arm"),
    ("gradus/ops/again.h", '/// Again.\n#pragma once\n#include "gradus/ops/matmul.h"\n#include "gradus/ops/matmul.h"\n', 4,
     "included above already"),
]


class CheckSources(unittest.TestCase):
    def findings(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(check_sources.findings(pathlib.Path(folder)))

    def test_tidy_tree_passes(self):
        self.assertEqual(self.findings(TIDY), [])

    def test_each_violation_is_found(self):
        for name, text, line, message in VIOLATIONS:
            with self.subTest(file=name):
                found = self.findings(TIDY | {name: text})
                self.assertTrue(any(f.startswith(f"{name}:{line}: ") and message in f for f in found), found)


if __name__ == "__main__":
    unittest.main()
