# gradus_compare_bits(NAME PROGRAM [ARGUMENTS...]): the test bits_of_NAME compares the output of a program of this build, which
# an emulator runs, with that of the same program of this machine's build. There is none where programs run by themselves.
set(GRADUS_NATIVE_BUILD ${PROJECT_SOURCE_DIR}/build/release CACHE PATH "This machine's own build, beside a cross build")
function(gradus_compare_bits name program)
  if(NOT CMAKE_CROSSCOMPILING)
    return()
  endif()
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  add_test(NAME bits_of_${name} COMMAND sh ${PROJECT_SOURCE_DIR}/tests/processors/compare.sh ${PROJECT_BINARY_DIR}
                                        ${GRADUS_NATIVE_BUILD} $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(bits_of_${name} PROPERTIES ENVIRONMENT "GRADUS_EMULATOR=${emulator}" TIMEOUT 7200)
endfunction()
