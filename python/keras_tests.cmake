# Tests of the Keras backend, for a Python that has Keras and pytest: python/requirements.txt lists them.
set(GRADUS_KERAS_PYTHON ${Python_EXECUTABLE} CACHE FILEPATH "The Python, with Keras, for python/tests/keras")
if(NOT GRADUS_TESTS)
  return()
endif()
execute_process(COMMAND ${GRADUS_KERAS_PYTHON} -c "import importlib.util as i; i.find_spec('keras').name, i.find_spec('pytest').name"
                RESULT_VARIABLE lacks_keras OUTPUT_QUIET ERROR_QUIET)
if(lacks_keras)
  message(STATUS "gradus: no tests of the Keras backend, since ${GRADUS_KERAS_PYTHON} has no keras and pytest")
  return()
endif()

function(gradus_keras_test name)
  add_test(NAME python_keras_${name} COMMAND ${GRADUS_KERAS_PYTHON} ${ARGN})
  set_tests_properties(python_keras_${name} PROPERTIES LABELS python TIMEOUT 600 ENVIRONMENT
                       "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;KERAS_BACKEND=gradus")
endfunction()

file(GLOB keras_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tests/keras/*_test.py)
foreach(test ${keras_tests})
  get_filename_component(name ${test} NAME_WE)
  gradus_keras_test(${name} ${test})
endforeach()
# Some of Keras's own tests; `make test-keras` runs all.
set(suite ${CMAKE_CURRENT_SOURCE_DIR}/tests/keras/suite)
gradus_keras_test(suite ${suite}/run.py ${PROJECT_BINARY_DIR}/keras-suite --again @${suite}/quick.txt)
# Twelve programs beside JAX, which is installed as for the benchmarks.
gradus_keras_test(beside ${CMAKE_CURRENT_SOURCE_DIR}/tests/keras/beside/keras_beside.py)
set_tests_properties(python_keras_beside PROPERTIES LABELS "full;python" TIMEOUT 1200)

# Small programs with older versions of Keras, each in an environment of its own, which the script makes.
foreach(version 3.10.0 3.12.0)
  add_test(NAME python_keras_${version} COMMAND ${PROJECT_SOURCE_DIR}/tools/keras_versions.sh ${version})
  set_tests_properties(python_keras_${version} PROPERTIES LABELS "full;python" TIMEOUT 900 ENVIRONMENT
                       "GRADUS_PYTHON_PACKAGE=${PROJECT_BINARY_DIR}/python;PYTHON=${Python_EXECUTABLE}")
endforeach()
